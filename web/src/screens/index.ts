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
  // Its picture in the list of screens: lines of an SVG of 24 by 24.
  icon: string;
  component: ComponentType;
  // The path of one thing on the screen.
  inner?: string;
}

export const toolScreen = lazy(() => import("./tool"));

const SCREENS: Screen[] = [
  { name: "tools", icon: "M14 6a4 4 0 0 1 5-2l-2.5 2.5 1 1L20 5a4 4 0 0 1-5.5 5L7 17.5 4.5 15 12 7.5A4 4 0 0 1 14 6z", path: "/tools", title: "nav.tools", component: Tools },
  { name: "bundles", icon: "M4 8l8-4 8 4v8l-8 4-8-4zM4 8l8 4 8-4M12 12v8", path: "/bundles", title: "nav.bundles", component: lazy(() => import("./bundles")) },
  { name: "recipes", icon: "M5 5h6v4H5zM13 15h6v4h-6zM8 9v4h8v2", path: "/recipes", title: "nav.recipes", inner: "/recipes/:address", component: lazy(() => import("./recipes")) },
  { name: "publications", icon: "M6 4h9l3 3v13H6zM9 10h6M9 14h6", path: "/published", title: "nav.publications", component: lazy(() => import("./publications")) },
  { name: "approvals", icon: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4", path: "/approvals", title: "nav.approvals", component: lazy(() => import("./approvals")) },
  { name: "requests", icon: "M4 5h16v11H9l-5 4zM12 8v5M9.5 10.5h5", path: "/requests", title: "nav.requests", component: lazy(() => import("./requests")) },
  { name: "activity", icon: "M4 20V4M4 20h16M8 16v-5M12 16V8M16 16v-7", path: "/activity", title: "nav.activity", component: lazy(() => import("./activity")) },
  { name: "access", icon: "M8 15a4 4 0 1 1 3.5-2L20 13v3h-2v-3M8 11h0", path: "/access", title: "nav.access", component: lazy(() => import("./access")) },
  { name: "health", icon: "M3 12h4l2-6 4 12 2-6h6", path: "/health", title: "nav.health", component: lazy(() => import("./health")) },
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
