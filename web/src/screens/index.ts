// The screens, each loaded when it is first shown.
import { type ComponentType, lazy } from "react";
import type { MessageId } from "../messages";
import { Tools } from "./tools";

export interface Screen {
  path: string;
  title: MessageId;
  component: ComponentType;
}

export const toolScreen = lazy(() => import("./tool"));

export const screens: Screen[] = [
  { path: "/tools", title: "nav.tools", component: Tools },
  { path: "/bundles", title: "nav.bundles", component: lazy(() => import("./bundles")) },
  { path: "/recipes", title: "nav.recipes", component: lazy(() => import("./recipes")) },
  { path: "/approvals", title: "nav.approvals", component: lazy(() => import("./approvals")) },
  { path: "/requests", title: "nav.requests", component: lazy(() => import("./requests")) },
  { path: "/health", title: "nav.health", component: lazy(() => import("./health")) },
];
