// Who made a call, in words: the server knows callers by the ids of their tokens.
import { useQuery } from "@tanstack/react-query";
import { read } from "../api/client";
import { t } from "../messages";

const TOKEN_ID = /^[0-9a-f]{16}$/;
// The name of all tokens that sessions of this page are.
const PAGE = "web page";

// `holder` is the name of the token, and empty for one that is gone and for a caller without one.
export function callerName(caller: string, holder: string): string {
  if (caller === "local") return t("caller.local");
  if (holder === PAGE) return t("caller.page");
  if (holder) return holder;
  if (TOKEN_ID.test(caller)) return t("caller.gone", { id: caller });
  return caller;
}

// The same for a person who may approve; the bare id until the name is known.
export function useCallerName(caller: string): string {
  const found = useQuery({
    queryKey: ["caller", caller],
    queryFn: ({ signal }) => read<{ name: string }>(`/ui/callers/${encodeURIComponent(caller)}`, {}, signal),
    enabled: TOKEN_ID.test(caller),
    staleTime: 60_000,
  });
  return TOKEN_ID.test(caller) && !found.data ? caller : callerName(caller, found.data?.name ?? "");
}
