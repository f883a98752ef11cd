// Tokens with their scopes and limits, the limits of the server, and secrets by name, never by value.
import { Alert, Badge, Button, Card, Checkbox, Code, CopyButton, Group, NumberInput, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { read, send } from "../api/client";
import { type MessageId, t } from "../messages";
import { Dialog } from "../parts/dialog";
import { Failure } from "../parts/failure";
import { useWho } from "../sign-in";

interface Token {
  id: string;
  name: string;
  scopes: string[];
  createdAt: number;
  expiresAt: number | null;
  limits: Record<string, unknown> | null;
}
interface Access {
  tokens: Token[];
  secrets: { name: string; from: string }[];
  limits: Record<string, number>;
}

const SCOPES = ["read", "invoke", "manage", "approve", "confirm"];

export default function AccessScreen() {
  const who = useWho();
  const found = useQuery({ queryKey: ["access"], queryFn: ({ signal }) => read<Access>("/ui/access", {}, signal) });
  return (
    <Stack gap="md">
      <Title order={2}>{t("nav.access")}</Title>
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {who.csrf ? <NewToken mayGive={who.scopes} /> : <Alert variant="outline">{t("access.person")} {t("sign.link.help")}</Alert>}
      {found.data && (
        <>
          <section aria-label={t("access.tokens")}>
            <Title order={3}>{t("access.tokens")}</Title>
            {found.data.tokens.length === 0 && <Text>{t("access.tokens.none")}</Text>}
            <Stack gap="xs">{found.data.tokens.map((token) => <One key={token.id} token={token} mayRevoke={Boolean(who.csrf)} />)}</Stack>
          </section>
          <section aria-label={t("access.secrets")}>
            <Title order={3}>{t("access.secrets")}</Title>
            <Text size="sm">{found.data.secrets.length ? t("access.secrets.help") : t("access.secrets.none")}</Text>
            <Table><Table.Tbody>{found.data.secrets.map((secret) => <Table.Tr key={secret.name}><Table.Th scope="row" className="wrap">{secret.name}</Table.Th><Table.Td>{secret.from}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
          </section>
          <section aria-label={t("access.limits")}>
            <Title order={3}>{t("access.limits")}</Title>
            <Table><Table.Tbody>{Object.entries(found.data.limits).map(([name, value]) => <Table.Tr key={name}><Table.Th scope="row">server.{name}</Table.Th><Table.Td>{value}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
          </section>
        </>
      )}
    </Stack>
  );
}

function NewToken({ mayGive }: { mayGive: string[] }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string[]>(["read"]);
  const [days, setDays] = useState<number | string>("");
  const [bundles, setBundles] = useState("");
  const create = useMutation({
    mutationFn: () => {
      const words = bundles.split(",").map((word) => word.trim()).filter(Boolean);
      return send<{ token: string }>("POST", "/ui/access/tokens", {
        name,
        scopes,
        ...(days !== "" && { days: Number(days) }),
        ...(words.length > 0 && { limits: { bundles: words } }),
      });
    },
    onSuccess: () => {
      setName("");
      return queries.invalidateQueries({ queryKey: ["access"] });
    },
  });
  return (
    <Card withBorder component="section" aria-label={t("access.create")}>
      <form onSubmit={(event) => { event.preventDefault(); create.mutate(); }}>
        <Stack gap="sm">
          <TextInput label={t("access.name")} required value={name} onChange={(event) => setName(event.currentTarget.value)} />
          <Checkbox.Group label={t("access.scopes")} value={scopes} onChange={setScopes}>
            <Group>{SCOPES.filter((scope) => mayGive.includes(scope)).map((scope) => <Checkbox key={scope} value={scope} label={t(`access.scope.${scope}` as MessageId)} />)}</Group>
          </Checkbox.Group>
          <Group align="start">
            <NumberInput label={t("access.days")} description={t("access.days.help")} min={1} max={3650} value={days} onChange={setDays} hideControls />
            <TextInput label={t("access.bundles")} description={t("access.bundles.help")} value={bundles} onChange={(event) => setBundles(event.currentTarget.value)} />
          </Group>
          {create.error && <Failure message={create.error.message} />}
          <Group><Button type="submit" loading={create.isPending} disabled={!name.trim() || scopes.length === 0}>{t("access.create")}</Button></Group>
        </Stack>
      </form>
      {create.data && (
        <Alert mt="sm" variant="outline" color="teal" role="status" title={t("access.created")}>
          <Code block className="wrap">{create.data.token}</Code>
          <CopyButton value={create.data.token}>{({ copied, copy }) => <Button mt="xs" size="compact-sm" variant="default" onClick={copy}>{t(copied ? "tool.copied" : "tool.copy")}</Button>}</CopyButton>
        </Alert>
      )}
    </Card>
  );
}

function One({ token, mayRevoke }: { token: Token; mayRevoke: boolean }) {
  const queries = useQueryClient();
  const [isAsking, ask] = useState(false);
  const revoke = useMutation({
    mutationFn: () => send("DELETE", `/ui/access/tokens/${encodeURIComponent(token.id)}`),
    onSettled: () => ask(false),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["access"] }),
  });
  return (
    <Card withBorder component="article" aria-label={token.name} padding="xs">
      <Group justify="space-between">
        <div>
          <Text fw={600} className="wrap">{token.name}</Text>
          <Group gap={4}>{token.scopes.map((scope) => <Badge key={scope} variant="outline" tt="none" c="var(--mantine-color-text)">{t(`access.scope.${scope}` as MessageId)}</Badge>)}</Group>
          <Text size="sm">{token.id} · {token.expiresAt === null ? t("access.forever") : t("access.until", { time: new Date(token.expiresAt * 1000).toLocaleString() })}</Text>
          {token.limits && <Text size="sm" className="wrap">{t("access.limited", { limits: JSON.stringify(token.limits) })}</Text>}
        </div>
        {mayRevoke && <Button variant="default" size="compact-sm" aria-label={t("access.revoke.named", { name: token.name })} onClick={() => ask(true)}>{t("access.revoke")}</Button>}
      </Group>
      {revoke.error && <Failure message={revoke.error.message} />}
      <Dialog opened={isAsking} onClose={() => ask(false)} title={t("access.revoke")}>
        <Text className="wrap">{t("access.revoke.sure", { name: token.name })}</Text>
        <Group mt="md">
          <Button color="red.9" onClick={() => revoke.mutate()}>{t("access.revoke")}</Button>
          <Button variant="default" onClick={() => ask(false)}>{t("bundles.cancel")}</Button>
        </Group>
      </Dialog>
    </Card>
  );
}
