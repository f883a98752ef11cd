type Size = 'S' | 'M' | 'L';

interface Parcel {
  weightKg: number;
  size?: Size;
  tags?: string[];
  to: { city: string; country?: string };
}

const BASE: Record<Size, number> = { S: 3, M: 5, L: 9 };

/** Price of a parcel. */
export default function parcel(p: Parcel, express: boolean = false): { price: number; to: string } {
  const base = BASE[p.size ?? 'S'];
  return { price: (base + p.weightKg) * (express ? 2 : 1), to: `${p.to.city}/${p.to.country ?? 'DE'}` };
}
