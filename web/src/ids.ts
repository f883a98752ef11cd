// Ids and short names as the server takes them.

// A UUID of version 7: the time, then random bits.
export function newBundleId(now = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  let time = now;
  for (let place = 5; place >= 0; place--) {
    bytes[place] = time % 256;
    time = Math.floor(time / 256);
  }
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

// The short name of a title: letters and digits of any script, with dashes between.
export function slugFor(title: string): string {
  return title.normalize("NFC").toLowerCase().replace(/[^\p{L}\p{Nd}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 64).replace(/-+$/, "") || "tool";
}

// "v1" becomes v2 and "1.4.2" becomes 1.4.3; any other gets a number.
export function nextVersion(version: string): string {
  return /\d$/.test(version) ? version.replace(/\d+$/, (number) => String(Number(number) + 1)) : `${version}-2`;
}
