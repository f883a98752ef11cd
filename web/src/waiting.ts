// Calls that wait for a person: how many there are is told on every screen, in the window's title, and by the browser if it may.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { api, type Approval, take } from "./api/client";
import { t } from "./messages";
import { useFeatures } from "./screens";
import { useWho } from "./sign-in";
import { visible } from "./visible";

const EVERY_MS = 3_000;

export function approvalsQuery(state: "pending" | "all", enabled: boolean) {
  return {
    queryKey: ["approvals", state],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Approval[]> =>
      (await take(api.GET("/approvals", { params: { query: { state } }, signal }))).approvals,
    // Also while another window is in front.
    refetchInterval: EVERY_MS,
    refetchIntervalInBackground: true,
    enabled,
  };
}

// How many calls wait for this person; another one decides about their own.
export function useWaiting(): number {
  const who = useWho();
  const features = useFeatures();
  const { data: all } = useQuery(approvalsQuery("pending", features.has("approvals") && who.scopes.includes("approve")));
  const data = useMemo(() => all?.filter((one) => one.caller !== who.caller), [all, who.caller]);
  const known = useRef<ReadonlySet<string>>(null);
  const count = data?.length ?? 0;
  useEffect(() => {
    document.title = count > 0 ? `(${count}) ${t("app.title")}` : t("app.title");
  }, [count]);
  useEffect(() => {
    if (!data) return;
    const before = known.current;
    known.current = new Set(data.map((one) => one.id));
    if (before === null || notifying() !== "granted") return;
    for (const one of data.filter(({ id }) => !before.has(id))) {
      const notice = new Notification(t("approvals.notice"), { body: visible(one.tool), tag: one.id });
      notice.onclick = () => {
        window.focus();
        location.hash = "#/approvals";
      };
    }
  }, [data]);
  return count;
}

// Whether the browser may tell of a call that waits; empty where it cannot.
export function notifying(): NotificationPermission | "" {
  return "Notification" in window ? Notification.permission : "";
}
