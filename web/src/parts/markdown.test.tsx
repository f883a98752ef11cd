import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { checkedLink } from "../links";
import Markdown from "./markdown";

function show(text: string): HTMLElement {
  return render(<MantineProvider><Markdown text={text} /></MantineProvider>).container;
}

test("headings, lists, code and tables are elements", () => {
  const shown = show("# Use\n\n- one `two`\n\n```js\nlet a;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
  expect(screen.getByRole("heading", { name: "Use" }).tagName).toBe("H4");
  expect(shown.querySelector("li code")?.textContent).toBe("two");
  expect(shown.querySelector("pre")?.textContent).toBe("let a;");
  expect([...shown.querySelectorAll("th, td")].map((cell) => cell.textContent)).toEqual(["a", "b", "1", "2"]);
});

test("markup of the author is text, and no picture is loaded", () => {
  const shown = show('<img src=x onerror=alert(1)>\n\n![a dog](https://example.com/dog.png) <script>alert(2)</script>');
  expect(shown.querySelector("img, script")).toBeNull();
  expect(shown.textContent).toContain("<img src=x onerror=alert(1)>");
  expect(shown.textContent).toContain("a dog");
});

test("a link says where it leads; one that is no web address is text", () => {
  const shown = show("[your bank](https://evil.example/x) and [click](javascript:alert(1)) and [me](https://a:b@c.example)");
  expect([...shown.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual(["https://evil.example/x"]);
  expect(shown.textContent).toContain("your bank (evil.example) and click and me");
});

test("only web addresses without credentials are links", () => {
  expect(checkedLink("https://example.com/a")?.host).toBe("example.com");
  for (const text of ["javascript:alert(1)", "data:text/html,x", "//example.com", "/tools", "file:///etc/passwd", "https://u@example.com"]) {
    expect(checkedLink(text)).toBeNull();
  }
});

test("deep nesting ends, and long text is cut", () => {
  expect(show("> ".repeat(500) + "deep").textContent).toContain("…");
  expect(show("a ".repeat(150_000)).textContent).toContain("200,000 of 300,000");
});
