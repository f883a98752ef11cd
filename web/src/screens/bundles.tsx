// Bundles: switches, and which source each comes from.
import { Badge, Card, Group, Stack, Switch, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, type Schemas, take } from "../api/client";
import { t } from "../messages";
import { Failure } from "../parts/failure";

type Bundle = Schemas["Bundle"];

export default function Bundles() {
  const found = useQuery({
    queryKey: ["bundles"],
    queryFn: ({ signal }) => take(api.GET("/tools/bundles", { params: { query: { includeDisabled: true, pageSize: 256 } }, signal })),
  });
  if (found.error) return <Failure message={found.error.message} retry={() => void found.refetch()} />;
  const bundles = found.data?.bundles ?? [];
  return (
    <Stack gap="sm">
      <Title order={2}>{t("nav.bundles")}</Title>
      {found.isSuccess && bundles.length === 0 && <Text role="status">{t("bundles.none")}</Text>}
      {bundles.map((bundle) => <One key={bundle.bundleID} bundle={bundle} />)}
    </Stack>
  );
}

function One({ bundle }: { bundle: Bundle }) {
  const queries = useQueryClient();
  const turn = useMutation({
    mutationFn: (isEnabled: boolean) => take(api.PATCH("/tools/bundles/{bundleID}", { params: { path: { bundleID: bundle.bundleID } }, body: { isEnabled } })),
    onSettled: () => queries.invalidateQueries(),
  });
  return (
    <Card withBorder component="article" aria-label={bundle.displayName}>
      <Group justify="space-between" wrap="nowrap">
        <div>
          <Title order={3} size="h4" className="wrap">{bundle.displayName}</Title>
          <Text className="wrap">{bundle.description}</Text>
          <Badge variant="outline" tt="none" c="var(--mantine-color-text)">{bundle.source}</Badge>
        </div>
        <Switch
          aria-label={t("bundles.switch", { name: bundle.displayName })}
          checked={turn.isPending ? turn.variables : bundle.isEnabled}
          onChange={(event) => turn.mutate(event.currentTarget.checked)}
        />
      </Group>
      {turn.error && <Failure message={turn.error.message} />}
    </Card>
  );
}
