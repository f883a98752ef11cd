// Which language the page speaks, and how that language writes numbers. The server names the languages that it has beside English;
// the page takes the one of the address (?lang=de), else the first that the browser asks for.
let current = "en";

export function language(): string {
  return current;
}

// As the person's browser writes the language, which may be that of a country: en-GB has other dates than en-US.
export function locale(): string {
  return navigator.languages.find((name) => (name === current || name.startsWith(`${current}-`)) && isTag(name)) ?? current;
}

// Chromium on a system with the locale C names en-US@posix, which no format takes.
function isTag(name: string): boolean {
  try {
    return Intl.getCanonicalLocales(name).length === 1;
  } catch {
    return false;
  }
}

export function pluralOf(count: number): string {
  return new Intl.PluralRules(current).select(count);
}

export function writeNumber(value: number): string {
  return new Intl.NumberFormat(locale(), { maximumSignificantDigits: 15 }).format(value);
}

// The language of `offered` that is wanted most; English if none is.
export function choose(offered: readonly string[], wanted: readonly string[]): string {
  for (const name of wanted) {
    const found = [name, name.split("-")[0]].find((one) => one === "en" || (one !== undefined && offered.includes(one)));
    if (found) return found;
  }
  return "en";
}

// The texts of the chosen language, or none if the page stays English.
export async function load(): Promise<Record<string, string>> {
  const offered = document.querySelector<HTMLMetaElement>('meta[name="languages"]')?.content.split(" ") ?? [];
  const asked = new URLSearchParams(location.search).get("lang");
  const chosen = choose(offered, [...(asked ? [asked] : []), ...navigator.languages]);
  if (chosen === "en") return {};
  try {
    const answer = await fetch(`/ui/languages/${encodeURIComponent(chosen)}`, { credentials: "same-origin" });
    if (!answer.ok) return {};
    const texts = (await answer.json()) as Record<string, string>;
    become(chosen);
    return texts;
  } catch {
    // A page in English is better than none.
    return {};
  }
}

export function become(name: string): void {
  current = name;
  document.documentElement.lang = name;
  const known = new Intl.Locale(name) as Intl.Locale & { getTextInfo?: () => { direction: string } };
  document.documentElement.dir = known.getTextInfo?.().direction ?? "ltr";
}
