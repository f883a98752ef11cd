// Requests for missing tools: what was asked for, and how far each is.
import { Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, take } from "../api/client";
import { t } from "../messages";
import { Failure } from "../parts/failure";
import { Value } from "../parts/result-view";

export default function Requests() {
  const found = useQuery({ queryKey: ["requests"], queryFn: ({ signal }) => take(api.GET("/requests", { signal })), refetchInterval: 3_000 });
  if (found.error) return <Failure message={found.error.message} retry={() => void found.refetch()} />;
  const requests = found.data?.requests ?? [];
  return (
    <Stack gap="sm">
      <Title order={2}>{t("nav.requests")}</Title>
      {found.isSuccess && requests.length === 0 && <Text role="status">{t("requests.none")}</Text>}
      {requests.map((request) => (
        <Card key={request.id} withBorder component="article" aria-label={request.name}>
          <Group justify="space-between"><Title order={3} size="h4" className="wrap">{request.name}</Title><Badge variant="outline" c="var(--mantine-color-text)">{request.status}</Badge></Group>
          {request.error && <Text className="wrap">{request.error}</Text>}
          <Value value={request.yaml} />
        </Card>
      ))}
    </Stack>
  );
}
