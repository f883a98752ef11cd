export const RATES = { NO: 25, DE: 19 };
export const round = (n) => Math.round(n * 100) / 100;
