// The screens that the page knows, each loaded when it is first shown. Which of them are there, the server says: a screen
// belongs to a feature, and one whose feature is not there is not shown.
import { useQuery } from "@tanstack/react-query";
import { type ComponentType, lazy } from "react";
import { read } from "../api/client";
import type { MessageId } from "../messages";
import { Tools } from "./tools";

export interface Screen {
  name: string;
  path: string;
  title: MessageId;
  component: ComponentType;
  // The path of one thing on the screen.
  inner?: string;
}

export const toolScreen = lazy(() => import("./tool"));

const SCREENS: Screen[] = [
  { name: "tools", path: "/tools", title: "nav.tools", component: Tools },
  { name: "bundles", path: "/bundles", title: "nav.bundles", component: lazy(() => import("./bundles")) },
  { name: "recipes", path: "/recipes", title: "nav.recipes", inner: "/recipes/:address", component: lazy(() => import("./recipes")) },
  { name: "publications", path: "/published", title: "nav.publications", component: lazy(() => import("./publications")) },
  { name: "approvals", path: "/approvals", title: "nav.approvals", component: lazy(() => import("./approvals")) },
  { name: "requests", path: "/requests", title: "nav.requests", component: lazy(() => import("./requests")) },
  { name: "activity", path: "/activity", title: "nav.activity", component: lazy(() => import("./activity")) },
  { name: "access", path: "/access", title: "nav.access", component: lazy(() => import("./access")) },
  { name: "health", path: "/health", title: "nav.health", component: lazy(() => import("./health")) },
];

export function useFeatures(): ReadonlySet<string> {
  const found = useQuery({
    queryKey: ["screens"],
    queryFn: ({ signal }) => read<{ screens: string[] }>("/ui/screens", {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return new Set(found.data?.screens);
}

export function useScreens(): Screen[] {
  const there = useFeatures();
  return SCREENS.filter((screen) => there.has(screen.name));
}
