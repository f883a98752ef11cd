type Kind = 'a' | 'b';
export const describe = (kind: Kind, times: number = 1): string[] => Array(times).fill(kind);
