import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { LiveView } from "./live-view";

test("chunks are text, and progress is a bar", () => {
  const live = { text: "<b>one</b>", chunks: 2, figures: { progress: 1, total: 2, message: "half" } };
  const shown = render(<MantineProvider><LiveView live={live} /></MantineProvider>).container;
  expect(shown.querySelector("b")).toBeNull();
  expect(shown.querySelector("pre, code")?.textContent).toBe("<b>one</b>");
  expect(screen.getByRole("progressbar").getAttribute("aria-valuenow")).toBe("50");
  expect(shown.textContent).toContain("1 / 2 half");
});
