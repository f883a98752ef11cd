// What the server says about itself, about files that did not load and tools that cannot run here, and what `crib doctor` says.
import { Alert, Anchor, Card, Group, List, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, read, take } from "../api/client";
import { t } from "../messages";
import { Facts } from "../parts/facts";
import { Failure } from "../parts/failure";
import { type Obstacle, useObstacles } from "../parts/obstacles";
import { useWho } from "../sign-in";

interface Doctor {
  about: Record<string, string>;
  settings: { name: string; value: unknown; where: string; about: string }[];
  sandbox: Record<string, Record<string, unknown>>;
  protected: Record<string, string[]>;
  warnings: string[];
}
const MOST_TOOLS = 20;

export default function Health() {
  const who = useWho();
  const health = useQuery({ queryKey: ["health"], queryFn: ({ signal }) => take(api.GET("/crib/health", { signal })), refetchInterval: 10_000 });
  const doctor = useQuery({ queryKey: ["doctor"], queryFn: ({ signal }) => read<Doctor>("/ui/doctor", {}, signal), enabled: who.scopes.includes("manage") });
  return (
    <Stack gap="sm">
      <Title order={2}>{t("nav.health")}</Title>
      {health.error && <Failure message={health.error.message} retry={() => void health.refetch()} />}
      {health.data && (
        <>
          <Alert color={health.data.ready ? "teal" : "orange"} variant="outline">
            <Text>{t(health.data.ready ? "health.ready" : "health.notReady")} {t("health.version", { version: health.data.version })}</Text>
          </Alert>
          <Title order={3}>{t("health.problems")}</Title>
          {health.data.problems.length === 0 ? <Text>{t("health.problems.none")}</Text> : (
            <List>{health.data.problems.map((line) => <List.Item key={line}><Text className="wrap">{line}</Text></List.Item>)}</List>
          )}
          {health.data.queue && (<><Title order={3}>{t("health.queue")}</Title><Text className="wrap">{health.data.queue}</Text></>)}
        </>
      )}
      {who.scopes.includes("manage") && <Obstacles />}
      {doctor.isLoading && <Text role="status">{t("app.loading")}</Text>}
      {doctor.error && <Failure message={doctor.error.message} retry={() => void doctor.refetch()} />}
      {doctor.data && <Report doctor={doctor.data} />}
    </Stack>
  );
}

// Why tools cannot run on this machine, each reason with its tools.
function Obstacles() {
  const found = useObstacles();
  return (
    <section aria-label={t("health.obstacles")}>
      <Stack gap="sm">
        <Title order={3}>{t("health.obstacles")}</Title>
        {found.isLoading && <Text role="status">{t("app.loading")}</Text>}
        {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
        {found.data?.length === 0 && <Text>{t("health.obstacles.none")}</Text>}
        {found.data?.map((obstacle) => <OneObstacle key={obstacle.reason} obstacle={obstacle} />)}
      </Stack>
    </section>
  );
}

function OneObstacle({ obstacle: { reason, tools } }: { obstacle: Obstacle }) {
  return (
    <Card withBorder component="article" padding="sm">
      <Group gap="sm">
        {tools.slice(0, MOST_TOOLS).map((tool) => <Anchor key={tool.address} fw={600} component={Link} href={`/tools/${encodeURIComponent(tool.address)}`} title={tool.address}>{tool.name}</Anchor>)}
        {tools.length > MOST_TOOLS && <Text>{t("health.obstacles.more", { count: tools.length - MOST_TOOLS })}</Text>}
      </Group>
      <Text className="wrap">{reason}</Text>
    </Card>
  );
}

function Report({ doctor }: { doctor: Doctor }) {
  const changed = doctor.settings;
  return (
    <Stack gap="sm">
      <Title order={3}>{t("health.doctor")}</Title>
      {doctor.warnings.length > 0 && (
        <Alert color="orange" variant="outline" title={t("health.warnings")}>
          {doctor.warnings.map((line) => <Text key={line} className="wrap" c="var(--mantine-color-text)">{line}</Text>)}
        </Alert>
      )}
      <Title order={4}>{t("health.about")}</Title>
      <Facts label={t("health.about")} rows={Object.entries(doctor.about)} />
      <Title order={4}>{t("health.sandbox")}</Title>
      <Facts label={t("health.sandbox")} rows={Object.entries(doctor.sandbox).map(([name, found]) => [name, Object.entries(found).map(([key, value]) => `${key}: ${listed(value)}`).join("; ")])} />
      <Title order={4}>{t("health.protected")}</Title>
      <Facts label={t("health.protected")} rows={Object.entries(doctor.protected).map(([name, names]) => [name, names.join(", ")])} />
      <Title order={4}>{t("health.settings")}</Title>
      {changed.length === 0 ? <Text>{t("health.settings.none")}</Text> : (
        <Table aria-label={t("health.settings")}>
          <Table.Thead><Table.Tr><Table.Th scope="col">{t("health.name")}</Table.Th><Table.Th scope="col">{t("health.value")}</Table.Th><Table.Th scope="col">{t("health.where")}</Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>{changed.map((setting) => <Table.Tr key={setting.name} title={setting.about}><Table.Th scope="row" className="wrap">{setting.name}</Table.Th><Table.Td className="wrap">{listed(setting.value)}</Table.Td><Table.Td className="wrap">{setting.where}</Table.Td></Table.Tr>)}</Table.Tbody>
        </Table>
      )}
    </Stack>
  );
}

function listed(value: unknown): string {
  if (Array.isArray(value)) return value.map(listed).join(", ") || "–";
  return typeof value === "string" ? value || "–" : (JSON.stringify(value) ?? "–");
}
