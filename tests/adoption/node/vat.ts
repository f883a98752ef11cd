export enum Rate {
  Full = 'full',
  Reduced = 'reduced',
}

export interface Input {
  /** Net amount. */
  net: number;
  rate?: Rate;
}

export function main(input: Input): { gross: number } {
  const factor = input.rate === Rate.Reduced ? 1.07 : 1.19;
  return { gross: Math.round(input.net * factor * 100) / 100 };
}
