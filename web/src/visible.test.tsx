import { render } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { visible, writeOutHidden } from "./visible";

test("characters that cannot be seen are written out as the terminal writes them", () => {
  expect(visible("a\u202eb\u001b[31m\n\t\r\n\r")).toBe("a\\u202eb\\x1b[31m\n\t\r\n\\x0d");
  expect(visible("\u3164\u115f\u2800\ufeff\u{e0041}\ud800")).toBe("\\u3164\\u115f\\u2800\\ufeff\\U000e0041\\ud800");
  expect(visible("a\u200db x\ufe0f \u{1f3f4}\u{e0067}")).toBe("a\\u200db x\\ufe0f \u{1f3f4}\\U000e0067");
});

test("what scripts and emoji need stays", () => {
  for (const text of ["Grüße, 東京", "می‌خواهم", "क्‍ष", "👩‍💻 ❤️ 1️⃣ ❤️‍🔥", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]) expect(visible(text)).toBe(text);
});

const HOSTILE = "safe\u202eevil";
const SHOWN = "safe\\u202eevil";

test("every text that is drawn shows them, and what is typed into a field stays as it is", () => {
  const shown = render(<p title={HOSTILE}>{HOSTILE}{["x", HOSTILE]}<input aria-label={HOSTILE} defaultValue={HOSTILE} /></p>).container;
  expect(shown.textContent).toBe(`${SHOWN}x${SHOWN}`);
  expect(shown.querySelector("p")?.title).toBe(SHOWN);
  expect(shown.querySelector("input")?.getAttribute("aria-label")).toBe(SHOWN);
  expect(shown.querySelector("input")?.value).toBe(HOSTILE);
});

test("a text that is added without React is written out", async () => {
  const place = document.createElement("div");
  writeOutHidden(place);
  place.append(document.createElement("p"));
  place.children[0]?.append(HOSTILE);
  await vi.waitFor(() => expect(place.textContent).toBe(SHOWN));
});
