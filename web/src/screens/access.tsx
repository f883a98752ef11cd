// Tokens with their scopes and limits, the limits of the server, and secrets by name, never by value.
import { Alert, Badge, Button, Card, Checkbox, Code, CopyButton, Group, NativeSelect, NumberInput, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { read, send } from "../api/client";
import { writeNumber } from "../language";
import { moment, t, word } from "../messages";
import { Dialog } from "../parts/dialog";
import { Facts } from "../parts/facts";
import { Failure } from "../parts/failure";
import { ShareBar } from "../parts/plots";
import { useWho } from "../sign-in";

interface Quota {
  per: string;
  currency?: string;
}
interface Token {
  id: string;
  name: string;
  scopes: string[];
  createdAt: number;
  expiresAt: number | null;
  limits: Record<string, string[] | string> | null;
  quota: Quota | null;
}
// How much of a limit is used up: of a tool, by its address, or of a token, by its id.
interface Usage {
  subject: string;
  unit: string;
  per: string;
  limit: number;
  used: number;
}
interface Access {
  tokens: Token[];
  secrets: { name: string; from: string }[];
  hosts: { host: string; from: "settings" | "page" }[];
  limits: Record<string, number>;
  usages: Usage[];
}

// Where the server says that a secret is which it can remove.
const IN_PROJECT = "this project";
const PERIODS = ["minute", "hour", "day", "month"];
// From here on a limit is shown as nearly used up.
const NEARLY = 0.8;
const SCOPES = ["read", "invoke", "manage", "approve", "confirm", "setup"];

export default function AccessScreen() {
  const who = useWho();
  const [isMaking, make] = useState(false);
  const found = useQuery({ queryKey: ["access"], queryFn: ({ signal }) => read<Access>("/ui/access", {}, signal) });
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={2}>{t("nav.access")}</Title>
        {who.csrf && <Button onClick={() => make(true)}>{t("access.create")}</Button>}
      </Group>
      {!found.data && !found.error && <Text role="status">{t("app.loading")}</Text>}
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {!who.csrf && <Alert variant="outline">{t("access.person")} {t("sign.link.help")}</Alert>}
      {isMaking && <NewToken mayGive={who.scopes} close={() => make(false)} />}
      {found.data && (
        <>
          <section aria-label={t("access.tokens")}>
            <Title order={3}>{t("access.tokens")}</Title>
            {found.data.tokens.length === 0 && <Text>{t("access.tokens.none")}</Text>}
            <Stack gap="xs">
              {found.data.tokens.map((token) => <One key={token.id} token={token} usages={found.data.usages.filter((usage) => usage.subject === token.id)} mayRevoke={Boolean(who.csrf)} />)}
            </Stack>
          </section>
          <section aria-label={t("access.secrets")}>
            <Title order={3}>{t("access.secrets")}</Title>
            <Text size="sm">{found.data.secrets.length ? t("access.secrets.help") : t("access.secrets.none")}</Text>
            <SetUp kind="secrets" mayChange={who.scopes.includes("setup")} items={found.data.secrets.map(({ name, from }) => ({ name, from, isOurs: from === IN_PROJECT }))} />
          </section>
          <section aria-label={t("access.hosts")}>
            <Title order={3}>{t("access.hosts")}</Title>
            <Text size="sm">{t("access.hosts.help")}</Text>
            <SetUp kind="hosts" mayChange={who.scopes.includes("setup")} items={found.data.hosts.map(({ host, from }) => ({ name: host, from: word("access.from", from), isOurs: from === "page" }))} />
          </section>
          <section aria-label={t("access.limits")}>
            <Title order={3}>{t("access.limits")}</Title>
            <Facts label={t("access.limits")} rows={Object.entries(found.data.limits).map(([name, value]) => [word("access.server", name), writeNumber(value)])} />
          </section>
          <ToolRates usages={found.data.usages.filter((usage) => usage.subject.includes("/"))} />
        </>
      )}
    </Stack>
  );
}

// Secrets or hosts: a list, and for a caller who may set them up a form. The value of a secret is sent and never shown again.
function SetUp({ kind, items, mayChange }: { kind: "secrets" | "hosts"; items: { name: string; from: string; isOurs: boolean }[]; mayChange: boolean }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const change = useMutation({
    mutationFn: (order: { method: "PUT" | "DELETE"; name: string; body?: { value?: string } }) => send(order.method, `/ui/setup/${kind}/${encodeURIComponent(order.name)}`, order.body),
    onSuccess: (_, order) => {
      if (order.method === "PUT") { setName(""); setValue(""); }
      return queries.invalidateQueries({ queryKey: ["access"] });
    },
  });
  const isSecret = kind === "secrets";
  return (
    <Stack gap="xs">
      {items.map((item) => (
        <Group key={item.name} gap="sm">
          <Code>{item.name}</Code>
          <Text size="sm">{item.from}</Text>
          {mayChange && item.isOurs && <Button variant="default" size="compact-sm" aria-label={t("access.remove.named", { name: item.name })} onClick={() => change.mutate({ method: "DELETE", name: item.name })}>{t("access.remove")}</Button>}
        </Group>
      ))}
      {mayChange && (
        <form autoComplete="off" onSubmit={(event) => { event.preventDefault(); change.mutate({ method: "PUT", name: name.trim(), body: isSecret ? { value } : {} }); }}>
          <Group align="end">
            <TextInput label={t(isSecret ? "access.secrets.name" : "access.hosts.name")} required value={name} onChange={(event) => setName(event.currentTarget.value)} />
            {isSecret && <PasswordInput w={260} label={t("access.secrets.value")} required autoComplete="new-password" value={value} onChange={(event) => setValue(event.currentTarget.value)} />}
            <Button type="submit" variant="default" loading={change.isPending} disabled={!name.trim() || (isSecret && !value)}>{t(isSecret ? "access.secrets.store" : "access.hosts.allow")}</Button>
          </Group>
        </form>
      )}
      {change.error && <Failure message={change.error.message} />}
    </Stack>
  );
}

// Tools that may be called only so often.
function ToolRates({ usages }: { usages: Usage[] }) {
  if (usages.length === 0) return null;
  return (
    <section aria-label={t("access.rates")}>
      <Title order={3}>{t("access.rates")}</Title>
      <Stack gap="xs">{usages.map((usage) => <div key={`${usage.subject} ${usage.unit}`}><Text fw={600} className="words">{usage.subject}</Text><UsageBar usage={usage} /></div>)}</Stack>
    </section>
  );
}

function UsageBar({ usage, currency = "" }: { usage: Usage; currency?: string }) {
  const share = usage.limit ? usage.used / usage.limit : 1;
  const unit = usage.unit === "money" ? currency : word("access.unit", usage.unit);
  return (
    <div className="usage">
      <Text size="sm">{t("access.used", { used: usage.used, limit: usage.limit, unit, per: word("access.per", usage.per) })}</Text>
      <ShareBar share={share} kind={share >= NEARLY ? "failed" : "first"} />
    </div>
  );
}

function NewToken({ mayGive, close }: { mayGive: string[]; close: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string[]>(["read"]);
  const [days, setDays] = useState<number | string>("");
  const [bundles, setBundles] = useState("");
  const [calls, setCalls] = useState<number | string>("");
  const [money, setMoney] = useState<number | string>("");
  const [currency, setCurrency] = useState("USD");
  const [per, setPer] = useState("day");
  const create = useMutation({
    mutationFn: () => {
      const words = bundles.split(",").map((word) => word.trim()).filter(Boolean);
      return send<{ token: string }>("POST", "/ui/access/tokens", {
        name,
        scopes,
        ...(days !== "" && { days: Number(days) }),
        ...(words.length > 0 && { limits: { bundles: words } }),
        ...((calls !== "" || money !== "") && {
          quota: { per, ...(calls !== "" && { calls: Number(calls) }), ...(money !== "" && { money: Number(money), currency: currency.trim() }) },
        }),
      });
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["access"] }),
  });
  return (
    <Dialog opened onClose={close} title={t("access.create")} size="lg">
      {!create.data && <form onSubmit={(event) => { event.preventDefault(); create.mutate(); }}>
        <Stack gap="sm">
          <TextInput label={t("access.name")} required value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
          <Checkbox.Group label={t("access.scopes")} value={scopes} onChange={setScopes}>
            <Group>{SCOPES.filter((scope) => mayGive.includes(scope)).map((scope) => <Checkbox key={scope} value={scope} label={word("access.scope", scope)} />)}</Group>
          </Checkbox.Group>
          <Group align="start">
            <NumberInput label={t("access.days")} description={t("access.days.help")} min={1} max={3650} value={days} onChange={setDays} hideControls />
            <TextInput label={t("access.bundles")} description={t("access.bundles.help")} value={bundles} onChange={(event) => setBundles(event.currentTarget.value)} />
          </Group>
          <fieldset>
            <legend>{t("access.quota")}</legend>
            <Group align="end">
              <NumberInput label={t("access.quota.calls")} min={1} value={calls} onChange={setCalls} hideControls w={150} />
              <NumberInput label={t("access.quota.money")} min={0} decimalScale={6} value={money} onChange={setMoney} hideControls w={150} />
              <TextInput label={t("access.quota.currency")} value={currency} onChange={(event) => setCurrency(event.currentTarget.value)} w={100} />
              <NativeSelect label={t("access.quota.per")} data={PERIODS.map((value) => ({ value, label: word("access.per", value) }))} value={per} onChange={(event) => setPer(event.currentTarget.value)} />
            </Group>
          </fieldset>
          {create.error && <Failure message={create.error.message} />}
          <Group><Button type="submit" loading={create.isPending} disabled={!name.trim() || scopes.length === 0}>{t("access.create")}</Button></Group>
        </Stack>
      </form>}
      {create.data && (
        <Alert variant="outline" color="teal" role="status" title={t("access.created")}>
          <Code block className="wrap">{create.data.token}</Code>
          <CopyButton value={create.data.token}>{({ copied, copy }) => <Button mt="xs" size="compact-sm" variant="default" onClick={copy}>{t(copied ? "tool.copied" : "tool.copy")}</Button>}</CopyButton>
        </Alert>
      )}
      {create.data && <Group mt="md"><Button onClick={close}>{t("access.create.done")}</Button></Group>}
    </Dialog>
  );
}

function One({ token, usages, mayRevoke }: { token: Token; usages: Usage[]; mayRevoke: boolean }) {
  const queries = useQueryClient();
  const [isAsking, ask] = useState(false);
  const revoke = useMutation({
    mutationFn: () => send("DELETE", `/ui/access/tokens/${encodeURIComponent(token.id)}`),
    onSettled: () => ask(false),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["access"] }),
  });
  return (
    <Card withBorder component="article" aria-label={token.name} padding="xs">
      <Group justify="space-between" align="start" wrap="nowrap">
        <div className="grow">
          <Text fw={600} className="wrap">{token.name}</Text>
          <Group gap={4} my={4}>{token.scopes.map((scope) => <Badge key={scope} variant="outline" tt="none" c="var(--mantine-color-text)">{word("access.scope", scope)}</Badge>)}</Group>
          <Text size="sm">{token.id} · {token.expiresAt === null ? t("access.forever") : t("access.until", { time: moment(token.expiresAt) })}</Text>
          {token.limits && <Text size="sm" className="wrap">{t("access.limited", { limits: limitWords(token.limits) })}</Text>}
          {usages.map((usage) => <UsageBar key={usage.unit} usage={usage} currency={token.quota?.currency ?? ""} />)}
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

// Tools, bundles and tags that a token is limited to, and its mode.
function limitWords(limits: Record<string, string[] | string>): string {
  return Object.entries(limits).map(([kind, names]) => `${word("access.limit", kind)} ${Array.isArray(names) ? names.join(", ") || "–" : names}`).join("; ");
}
