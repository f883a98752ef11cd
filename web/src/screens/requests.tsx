// Requests for missing tools: ask by form, follow live, see what the gate proved and refused, deliver, retry, cancel.
import { ActionIcon, Alert, Badge, Button, Card, Checkbox, Group, NativeSelect, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { api, type Schemas, take } from "../api/client";
import { moment, t, word } from "../messages";
import { argumentsOf, type ArgumentsState } from "../parts/arguments-editor";
import { Dialog } from "../parts/dialog";
import { Empty } from "../parts/empty";
import { Failure } from "../parts/failure";
import { Value } from "../parts/result-view";
import { type Field, followed, isEmpty, remembering, type Side, type Values } from "../requests/example";
import { ExampleEditor } from "../requests/example-editor";
import { useWho } from "../sign-in";

type ToolRequest = Schemas["ToolRequest"];
type RequestEvent = Schemas["RequestEvent"];
const COLOURS: Record<string, string> = { building: "indigo", ready: "teal", failed: "red", pending: "orange" };
const TYPES = ["string", "integer", "number", "boolean", "array", "object"];

export default function Requests() {
  const [isAsking, ask] = useState(false);
  const [asked, count] = useState(0);
  const [openID, open] = useState<string | null>(null);
  const found = useQuery({ queryKey: ["requests"], queryFn: ({ signal }) => take(api.GET("/requests", { signal })), refetchInterval: 3_000 });
  const requests = [...(found.data?.requests ?? [])].reverse();
  return (
    <Stack gap="sm">
      <Group justify="space-between"><Title order={2}>{t("nav.requests")}</Title><Button onClick={() => ask(true)}>{t("requests.new")}</Button></Group>
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {found.isLoading && <Text role="status">{t("app.loading")}</Text>}
      {found.isSuccess && requests.length === 0 && <Empty text={t("requests.none")} help={t("requests.none.help")} />}
      {requests.map((request) => (
        <Card key={request.id} withBorder component="article" aria-label={request.name}>
          <Group justify="space-between"><Title order={3} size="h4" className="wrap">{request.name}</Title><Badge variant="outline" color={COLOURS[request.status] ?? "gray"} c="var(--mantine-color-text)">{word("requests.status", request.status)}</Badge></Group>
          {request.error && <Text className="wrap">{request.error}</Text>}
          <Group mt="xs"><Button size="compact-sm" variant="default" aria-expanded={openID === request.id} onClick={() => open(openID === request.id ? null : request.id)}>{t("requests.open", { name: request.id })}</Button></Group>
          {openID === request.id && <Details request={request} />}
        </Card>
      ))}
      <Dialog opened={isAsking} onClose={() => ask(false)} title={t("requests.new")} size="xl" keeps>
        <NewRequest key={asked} done={(id) => { ask(false); open(id); count(asked + 1); }} />
      </Dialog>
    </Stack>
  );
}

// Follow the events of a request as the server sends them; a broken connection is taken up where it broke off.
function useEvents(requestID: string): { events: RequestEvent[]; isBroken: boolean } {
  const queries = useQueryClient();
  const [events, setEvents] = useState<RequestEvent[]>([]);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    const source = new EventSource(`/requests/${encodeURIComponent(requestID)}/events`);
    const refresh = () => void queries.invalidateQueries({ queryKey: ["requests"] });
    source.addEventListener("open", () => setBroken(false));
    source.addEventListener("error", () => setBroken(true));
    source.addEventListener("step", (message) => {
      const event = JSON.parse((message as MessageEvent<string>).data) as RequestEvent;
      setEvents((before) => (before.some((one) => one.number === event.number) ? before : [...before, event]));
      refresh();
    });
    source.addEventListener("end", () => {
      setBroken(false);
      source.close();
      refresh();
    });
    return () => source.close();
  }, [requestID, queries]);
  return { events, isBroken };
}

function Details({ request }: { request: ToolRequest }) {
  const who = useWho();
  const queries = useQueryClient();
  const { events, isBroken } = useEvents(request.id);
  const params = { path: { requestID: request.id } };
  const refresh = () => queries.invalidateQueries({ queryKey: ["requests"] });
  const cancel = useMutation({ mutationFn: () => take(api.POST("/requests/{requestID}/cancel", { params, body: {} })), onSettled: refresh });
  const retry = useMutation({ mutationFn: () => take(api.POST("/requests/{requestID}/retry", { params, body: {} })), onSettled: refresh });
  const isOpen = request.status === "pending" || request.status === "building";
  const mayManage = who.scopes.includes("manage");
  return (
    <Stack gap="sm" mt="sm">
      <Title order={4}>{t("requests.history")}</Title>
      {isOpen && <Text size="sm" role="status">{t(isBroken ? "requests.broken" : "requests.live")}</Text>}
      <ol className="ladder" aria-live="polite">
        {events.map((event) => (
          <li key={event.number}><Text><strong>{word("requests.step", event.step)}</strong> <Text span size="sm">{moment(Date.parse(event.at) / 1000, { timeStyle: "medium" })}</Text></Text><Text size="sm" className="wrap">{event.text}</Text></li>
        ))}
      </ol>
      {request.tool && <Group><Button component={Link} href={`/tools/${encodeURIComponent(request.tool)}`} variant="default">{t("requests.tool")}</Button></Group>}
      {(cancel.error ?? retry.error) && <Failure message={(cancel.error ?? retry.error)?.message ?? ""} />}
      {mayManage && (
        <Group>
          {isOpen && <Button variant="default" onClick={() => cancel.mutate()} loading={cancel.isPending}>{t("requests.cancel")}</Button>}
          {(request.status === "failed" || request.status === "cancelled") && <Button variant="default" onClick={() => retry.mutate()} loading={retry.isPending}>{t("requests.retry")}</Button>}
        </Group>
      )}
      {mayManage && isOpen && <Deliver request={request} />}
      <Title order={4}>{t("requests.written")}</Title>
      <Value value={request.yaml} />
    </Stack>
  );
}

function Deliver({ request }: { request: ToolRequest }) {
  const queries = useQueryClient();
  const [file, setFile] = useState(`${request.name}.py`);
  const [code, setCode] = useState("");
  const deliver = useMutation({
    mutationFn: () => take(api.POST("/requests/{requestID}/deliver", { params: { path: { requestID: request.id } }, body: { files: { [file]: code } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["requests"] }),
  });
  const problem = deliver.error as { problem?: { details?: { complaints?: unknown } } } | null;
  const complaints = problem?.problem?.details?.complaints;
  return (
    <form onSubmit={(event) => { event.preventDefault(); deliver.mutate(); }}>
      <Stack gap="xs">
        <Title order={4}>{t("requests.deliver")}</Title>
        <TextInput label={t("requests.deliver.file")} value={file} onChange={(event) => setFile(event.currentTarget.value)} />
        <Textarea label={t("requests.deliver.code")} autosize minRows={4} maxRows={20} ff="monospace" value={code} onChange={(event) => setCode(event.currentTarget.value)} />
        {deliver.error && <Failure message={deliver.error.message} />}
        {Array.isArray(complaints) && complaints.length > 0 && (
          <Alert color="red" variant="outline" title={t("requests.complaints")}>{complaints.map((line) => <Text key={String(line)} className="wrap" c="var(--mantine-color-text)">{String(line)}</Text>)}</Alert>
        )}
        <Group><Button type="submit" loading={deliver.isPending} disabled={!file.trim() || !code.trim()}>{t("requests.deliver.send")}</Button></Group>
      </Stack>
    </form>
  );
}

let counter = 0;
function newField(): Field {
  counter += 1;
  return { key: counter, name: "", type: "string", description: "", required: true };
}

// Asking has a form of its own beside that of an example, because forms do not stand in each other.
const FORM = "new-request";

function NewRequest({ done }: { done: (id: string) => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [fields, setFields] = useState<Record<Side, Field[]>>({ input: [newField()], output: [newField()] });
  const [examples, setExamples] = useState<ArgumentsState[]>([argumentsOf({ input: {}, output: {} })]);
  function change(side: Side, typed: Field[]) {
    const next = remembering(fields[side], typed);
    setFields({ ...fields, [side]: next });
    // A value goes with its field; JSON that cannot be read yet stays as it was typed.
    setExamples(examples.map((one) => (one.mistake ? one : argumentsOf({ ...one.values, [side]: followed((one.values[side] ?? {}) as Values, fields[side], next) }))));
  }
  const file = useMutation({
    mutationFn: () => {
      const given = examples.map((one) => one.values).filter((one) => !isEmpty(one));
      const request = {
        name,
        description,
        inputs: fields.input.filter((field) => field.name).map(({ key: _, held: __, ...field }) => field),
        outputs: fields.output.filter((field) => field.name).map((field) => ({ name: field.name, type: field.type, ...(field.description && { description: field.description }) })),
        ...(given.length > 0 && { examples: given }),
      };
      return take(api.POST("/requests", { body: { request } }));
    },
    onSuccess: (filed) => {
      void queries.invalidateQueries({ queryKey: ["requests"] });
      done(filed.id);
    },
  });
  return (
    <Stack gap="sm">
      <form id={FORM} onSubmit={(event) => { event.preventDefault(); file.mutate(); }}>
        <Stack gap="sm">
          <TextInput label={t("requests.name")} description={t("requests.name.help")} required value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
          <Textarea label={t("requests.what")} required autosize minRows={2} value={description} onChange={(event) => setDescription(event.currentTarget.value)} />
          <Fields title={t("requests.inputs")} add={t("requests.addInput")} fields={fields.input} change={(next) => change("input", next)} asksRequired />
          <Fields title={t("requests.outputs")} add={t("requests.addOutput")} fields={fields.output} change={(next) => change("output", next)} />
        </Stack>
      </form>
      <Text size="sm">{t("requests.example.help")}</Text>
      {examples.map((state, place) => (
        <ExampleEditor
          key={place}
          number={place + 1}
          inputs={fields.input}
          outputs={fields.output}
          state={state}
          change={(next) => setExamples(examples.map((one, at) => (at === place ? next : one)))}
          remove={examples.length > 1 ? () => setExamples(examples.filter((_, at) => at !== place)) : undefined}
        />
      ))}
      <Group><Button size="compact-sm" variant="default" onClick={() => setExamples([...examples, argumentsOf({ input: {}, output: {} })])}>{t("requests.example.add")}</Button></Group>
      {file.error && <Failure message={file.error.message} />}
      <Group><Button type="submit" form={FORM} loading={file.isPending} disabled={examples.some((one) => one.mistake)}>{t("requests.submit")}</Button></Group>
    </Stack>
  );
}

function Fields({ title, add, fields, change, asksRequired = false }: { title: string; add: string; fields: Field[]; change: (fields: Field[]) => void; asksRequired?: boolean }) {
  const set = (key: number, part: Partial<Field>) => change(fields.map((field) => (field.key === key ? { ...field, ...part } : field)));
  return (
    <fieldset>
      <legend>{title}</legend>
      <Stack gap="xs">
        {fields.map((field) => (
          <Group key={field.key} align="end" gap="xs">
            <TextInput label={t("requests.field")} w={130} value={field.name} onChange={(event) => set(field.key, { name: event.currentTarget.value })} />
            <NativeSelect label={t("requests.type")} data={TYPES.map((type) => ({ value: type, label: word("form.type", type) }))} value={field.type} onChange={(event) => set(field.key, { type: event.currentTarget.value })} />
            <TextInput label={t("requests.about")} className="grow" miw={160} value={field.description} onChange={(event) => set(field.key, { description: event.currentTarget.value })} />
            {asksRequired && <Checkbox label={t("requests.required")} mb={8} checked={field.required} onChange={(event) => set(field.key, { required: event.currentTarget.checked })} />}
            <ActionIcon size={36} variant="default" aria-label={t("requests.remove", { name: field.name })} onClick={() => change(fields.filter((one) => one.key !== field.key))}><span aria-hidden>×</span></ActionIcon>
          </Group>
        ))}
        <Group><Button size="compact-sm" variant="default" onClick={() => change([...fields, newField()])}>{add}</Button></Group>
      </Stack>
    </fieldset>
  );
}
