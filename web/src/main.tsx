import "@mantine/core/styles.css";
import "./page.css";
import { Badge, createTheme, DirectionProvider, MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";
import { Refusal } from "./api/client";
import { load } from "./language";
import { setTexts } from "./messages";
import { nonce } from "./nonce";
import { Shell } from "./shell";
import { SignInFrame } from "./sign-in";

// Shades and contrast are chosen for WCAG 2.2 AA in both schemes; Mantine's own are too pale for text on tinted ground.
const theme = createTheme({
  primaryColor: "indigo",
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  fontFamily: "system-ui, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, monospace",
  defaultRadius: "sm",
  cursorType: "pointer",
  respectReducedMotion: true,
  // Words stay as they are written: capitals are hard to read, and some languages have none.
  components: { Badge: Badge.extend({ defaultProps: { tt: "none" } }) },
});

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      retry: (failures, problem) => failures < 2 && problem instanceof Refusal && problem.problem.retryable === true,
    },
  },
});

// The first text is drawn in the language of the person.
setTexts(await load());
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <DirectionProvider>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={queries}>
        <Router hook={useHashLocation}>
          <SignInFrame>
            <Shell />
          </SignInFrame>
        </Router>
      </QueryClientProvider>
    </MantineProvider>
    </DirectionProvider>
  </StrictMode>,
);
