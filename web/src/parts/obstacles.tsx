// Why a tool cannot run on the machine of the server, found without a call; who may not change tools is not told.
import { Alert, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { read, type Tool } from "../api/client";
import { t } from "../messages";
import { useWho } from "../sign-in";

export interface Obstacle {
  reason: string;
  tools: { name: string; address: string }[];
}

// Of one tool, or of all.
export function useObstacles(name = "") {
  const who = useWho();
  return useQuery({
    queryKey: ["obstacles", name],
    queryFn: async ({ signal }) => (await read<{ obstacles: Obstacle[] }>("/ui/obstacles", { name }, signal)).obstacles,
    enabled: who.scopes.includes("manage"),
  });
}

export function ObstaclesOf({ tool }: { tool: Tool }) {
  const found = useObstacles(tool.address);
  if (!found.data?.length) return null;
  return (
    <Alert color="orange" variant="outline" title={t("tool.obstacles")}>
      {found.data.map(({ reason }) => <Text key={reason} className="wrap" c="var(--mantine-color-text)">{reason}</Text>)}
    </Alert>
  );
}
