import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Schemas } from "../api/client";
import { ExplainLadder } from "./explain-ladder";

test("each step says what it decides, why, by what, and how that is changed; a check that is newer than the page is shown as it is", () => {
  const explanation = {
    allowed: false,
    findings: [
      { gate: "rate", decision: "allow", note: "3 of 4 calls per hour left" },
      { gate: "capabilities", decision: "deny", reason: "network is not granted", where: "[access] in toolcrib.toml", cure: "crib grant <b>network</b>" },
      { gate: "brand new", decision: "not reached" },
    ],
  } as unknown as Schemas["Explanation"];
  const shown = render(<MantineProvider><ExplainLadder explanation={explanation} /></MantineProvider>).container;
  expect(screen.getByText("The call would not run.")).toBeTruthy();
  expect([...shown.querySelectorAll(".ladder > li")].map((step) => step.textContent)).toEqual([
    "✓Limits and quotas: passes3 of 4 calls per hour left",
    "✕What it needs is granted: refusesnetwork is not grantedDecided by: [access] in toolcrib.tomlTo change that: crib grant <b>network</b>",
    "–brand new: not reached",
  ]);
});
