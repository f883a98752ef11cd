import { afterEach, expect, test, vi } from "vitest";
import { become, choose, locale, writeNumber } from "./language";
import { english, setTexts, t, word } from "./messages";

afterEach(() => {
  become("en");
  setTexts({});
});

test("the language that is wanted most is chosen, a country's if it is there, else the plain one, else English", () => {
  expect(choose(["de", "pt-BR"], ["pt-BR", "de"])).toBe("pt-BR");
  expect(choose(["de", "pt-BR"], ["de-CH"])).toBe("de");
  expect(choose(["de"], ["fr", "en-GB", "de"])).toBe("en");
  expect(choose([], ["de"])).toBe("en");
});

test("texts and numbers are of the language, and what it lacks is English", () => {
  become("de");
  setTexts({ "nav.tools": "Werkzeuge", "tools.count|one": "{count} Werkzeug", "tools.count|other": "{count} Werkzeuge" });
  expect([t("nav.tools"), t("nav.bundles")]).toEqual(["Werkzeuge", "Bundles"]);
  expect([t("tools.count", { count: 1 }), t("tools.count", { count: 12_345 })]).toEqual(["1 Werkzeug", "12.345 Werkzeuge"]);
});

test("a name of a language that no format takes is passed over", () => {
  const asked = vi.spyOn(navigator, "languages", "get").mockReturnValue(["en-US@posix", "en-GB"]);
  expect([locale(), writeNumber(1_234)]).toEqual(["en-GB", "1,234"]);
  asked.mockReturnValue(["en-US@posix"]);
  expect([locale(), writeNumber(1_234)]).toEqual(["en", "1,234"]);
  asked.mockRestore();
});

test("a language may have more forms than English", () => {
  become("pl");
  setTexts({ "tools.count|one": "{count} narzędzie", "tools.count|few": "{count} narzędzia", "tools.count|many": "{count} narzędzi", "tools.count|other": "{count} narzędzia" });
  expect([1, 2, 5].map((count) => t("tools.count", { count }))).toEqual(["1 narzędzie", "2 narzędzia", "5 narzędzi"]);
});

test("words of the server that are not in the table are shown as they are", () => {
  expect([word("gate", "arguments"), word("gate", "brand new")]).toEqual(["The arguments fit", "brand new"]);
});

test("a text never changes what the page is: a translation has no prototype to offer", () => {
  setTexts(JSON.parse('{"__proto__": {"nav.tools": "wrong"}}') as Record<string, string>);
  expect(t("nav.tools")).toBe("Tools");
  expect(Object.keys(english).every((id) => typeof (english as Record<string, string>)[id] === "string")).toBe(true);
});
