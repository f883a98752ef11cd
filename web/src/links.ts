// Which links of others are followed: plain web addresses, with nothing in them that hides where they lead.
export function checkedLink(text: string): URL | null {
  let found: URL;
  try {
    found = new URL(text);
  } catch {
    return null;
  }
  const isWeb = found.protocol === "https:" || found.protocol === "http:";
  return isWeb && !found.username && !found.password ? found : null;
}
