// What the server says about itself and about files that did not load.
import { Alert, List, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, take } from "../api/client";
import { t } from "../messages";
import { Failure } from "../parts/failure";

export default function Health() {
  const health = useQuery({ queryKey: ["health"], queryFn: ({ signal }) => take(api.GET("/crib/health", { signal })), refetchInterval: 10_000 });
  if (health.error) return <Failure message={health.error.message} retry={() => void health.refetch()} />;
  if (!health.data) return <Text role="status">{t("app.loading")}</Text>;
  const { ready, version, problems, queue } = health.data;
  return (
    <Stack gap="sm">
      <Title order={2}>{t("nav.health")}</Title>
      <Alert color={ready ? "teal" : "orange"} variant="outline">
        <Text>{t(ready ? "health.ready" : "health.notReady")} {t("health.version", { version })}</Text>
      </Alert>
      <Title order={3}>{t("health.problems")}</Title>
      {problems.length === 0 ? <Text>{t("health.problems.none")}</Text> : (
        <List>{problems.map((line) => <List.Item key={line}><Text className="wrap">{line}</Text></List.Item>)}</List>
      )}
      {queue && (<><Title order={3}>{t("health.queue")}</Title><Text className="wrap">{queue}</Text></>)}
    </Stack>
  );
}
