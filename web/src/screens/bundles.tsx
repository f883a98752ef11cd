// Bundles: switches, create, edit, delete, export and import. Of two people who edit at once neither overwrites the other unseen.
import { Badge, Button, Card, FileInput, Group, Stack, Switch, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, readFile, Refusal, refusalOf, type Schemas, sendFile, take } from "../api/client";
import { newBundleId } from "../ids";
import { t, word } from "../messages";
import { Dialog } from "../parts/dialog";
import { DiffView } from "../parts/diff-view";
import { Empty } from "../parts/empty";
import { Failure } from "../parts/failure";

type Bundle = Schemas["Bundle"];
type Draft = Pick<Bundle, "slug" | "displayName" | "description" | "isEnabled">;
const EMPTY: Draft = { slug: "", displayName: "", description: "", isEnabled: true };

export default function Bundles() {
  const [edited, edit] = useState<Bundle | "new" | null>(null);
  const [isImporting, importOne] = useState(false);
  const found = useQuery({
    queryKey: ["bundles"],
    queryFn: ({ signal }) => take(api.GET("/tools/bundles", { params: { query: { includeDisabled: true, pageSize: 256 } }, signal })),
  });
  const bundles = found.data?.bundles ?? [];
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2}>{t("nav.bundles")}</Title>
        <Group gap="xs">
          <Button variant="default" onClick={() => importOne(true)}>{t("bundles.import")}</Button>
          <Button onClick={() => edit("new")}>{t("bundles.new")}</Button>
        </Group>
      </Group>
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {found.isLoading && <Text role="status">{t("app.loading")}</Text>}
      {found.isSuccess && bundles.length === 0 && <Empty text={t("bundles.none")} help={t("bundles.none.help")} />}
      {bundles.map((bundle) => <One key={bundle.bundleID} bundle={bundle} edit={() => edit(bundle)} />)}
      {isImporting && <Importer close={() => importOne(false)} />}
      {edited && <Editor bundle={edited === "new" ? null : edited} close={() => edit(null)} />}
    </Stack>
  );
}

function One({ bundle, edit }: { bundle: Bundle; edit: () => void }) {
  const queries = useQueryClient();
  const [isAsking, ask] = useState(false);
  const path = { bundleID: bundle.bundleID };
  const turn = useMutation({
    mutationFn: (isEnabled: boolean) => take(api.PATCH("/tools/bundles/{bundleID}", { params: { path }, body: { isEnabled } })),
    onSettled: () => queries.invalidateQueries(),
  });
  const remove = useMutation({
    mutationFn: () => take(api.DELETE("/tools/bundles/{bundleID}", { params: { path } })),
    onSettled: () => ask(false),
    onSuccess: () => queries.invalidateQueries(),
  });
  const save = useMutation({
    mutationFn: async () => offerFile(await readFile(archiveOf(bundle.bundleID)), `${bundle.slug}.zip`),
  });
  return (
    <Card withBorder component="article" aria-label={bundle.displayName}>
      <Group justify="space-between" wrap="nowrap" align="start">
        <div>
          <Title order={3} size="h4" className="wrap">{bundle.displayName}</Title>
          <Text className="wrap">{bundle.description}</Text>
          <Badge variant="outline" tt="none" c="var(--mantine-color-text)">{bundle.slug} · {word("bundles.source", bundle.source)}</Badge>
        </div>
        <Switch
          aria-label={t("bundles.switch", { name: bundle.displayName })}
          checked={turn.isPending ? turn.variables : bundle.isEnabled}
          onChange={(event) => turn.mutate(event.currentTarget.checked)}
        />
      </Group>
      {bundle.source === "store" && (
        <Group mt="xs">
          <Button size="compact-sm" variant="default" onClick={edit}>{t("bundles.edit", { name: bundle.displayName })}</Button>
          <Button size="compact-sm" variant="default" loading={save.isPending} onClick={() => save.mutate()}>{t("bundles.export", { name: bundle.displayName })}</Button>
          <Button size="compact-sm" variant="default" onClick={() => ask(true)}>{t("bundles.delete.named", { name: bundle.displayName })}</Button>
        </Group>
      )}
      {turn.error && <Failure message={turn.error.message} />}
      {save.error && <Failure message={save.error.message} />}
      {remove.error && <Failure message={remove.error.message} />}
      <Dialog opened={isAsking} onClose={() => ask(false)} title={t("bundles.delete")}>
        <Text className="wrap">{t("bundles.delete.sure", { name: bundle.displayName })}</Text>
        <Group mt="md">
          <Button color="red.9" onClick={() => remove.mutate()} loading={remove.isPending}>{t("bundles.delete")}</Button>
          <Button variant="default" onClick={() => ask(false)}>{t("bundles.cancel")}</Button>
        </Group>
      </Dialog>
    </Card>
  );
}

function archiveOf(bundleID: string): string {
  return `/tools/bundles/${bundleID}/archive`;
}

// Have the browser store a file, as if a link to it had been clicked.
function offerFile(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// An archive becomes a bundle of its own, disabled until somebody has looked at it.
function Importer({ close }: { close: () => void }) {
  const queries = useQueryClient();
  const [bundleID] = useState(() => newBundleId());
  const [file, choose] = useState<File | null>(null);
  const [slug, setSlug] = useState("");
  const send = useMutation({
    mutationFn: (archive: File) => {
      const query = slug.trim() ? `?${new URLSearchParams({ slug: slug.trim() })}` : "";
      return sendFile(`${archiveOf(bundleID)}${query}`, new Blob([archive], { type: "application/zip" }));
    },
    onSuccess: () => {
      void queries.invalidateQueries();
      close();
    },
  });
  return (
    <Dialog opened onClose={close} title={t("bundles.import")}>
      <form onSubmit={(event) => { event.preventDefault(); if (file) send.mutate(file); }}>
        <Stack gap="sm">
          <FileInput label={t("bundles.archive")} description={t("bundles.archive.help")} accept=".zip,application/zip" required value={file} onChange={choose} data-autofocus />
          <TextInput label={t("bundles.slug")} description={t("bundles.import.slug")} value={slug} onChange={(event) => setSlug(event.currentTarget.value)} />
          {send.error && <Failure message={send.error.message} />}
          <Group>
            <Button type="submit" disabled={!file} loading={send.isPending}>{t("bundles.import")}</Button>
            <Button variant="default" onClick={close}>{t("bundles.cancel")}</Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

interface Stored {
  etag: string;
  bundle: Draft;
}

async function readStored(bundleID: string): Promise<Stored> {
  const answer = await api.GET("/tools/bundles/{bundleID}", { params: { path: { bundleID } }, cache: "no-store" });
  if (!answer.data) throw refusalOf(answer.error, answer.response);
  return { etag: answer.response.headers.get("etag") ?? "", bundle: draftOf(answer.data) };
}

function draftOf(bundle: Draft): Draft {
  const { slug, displayName, description, isEnabled } = bundle;
  return { slug, displayName, description, isEnabled };
}

function Editor({ bundle, close }: { bundle: Bundle | null; close: () => void }) {
  const queries = useQueryClient();
  const [bundleID] = useState(() => bundle?.bundleID ?? newBundleId());
  const [base, setBase] = useState<Draft>(bundle ? draftOf(bundle) : EMPTY);
  // What was typed stays when the stored bundle arrives behind it.
  const [typed, setTyped] = useState<Partial<Draft>>({});
  const draft = { ...base, ...typed };
  const [theirs, setTheirs] = useState<Stored | null>(null);
  const [etag, setEtag] = useState<string | null>(null);
  // What is edited is what is stored at this moment, which may be newer than the list.
  const first = useQuery({
    queryKey: ["bundles", "one", bundleID],
    enabled: bundle !== null && etag === null,
    queryFn: async () => {
      const found = await readStored(bundleID);
      setEtag(found.etag);
      setBase(found.bundle);
      return found;
    },
    gcTime: 0,
  });
  const save = useMutation({
    mutationFn: async (match: string | null) => {
      const header = match ? { "If-Match": match } : {};
      const answer = await api.PUT("/tools/bundles/{bundleID}", { params: { path: { bundleID }, header }, body: draft });
      if (answer.data) return;
      if (answer.response.status === 412) setTheirs(await readStored(bundleID));
      throw refusalOf(answer.error, answer.response);
    },
    onSuccess: () => {
      void queries.invalidateQueries();
      close();
    },
  });
  const isConflict = theirs !== null && save.error instanceof Refusal;
  const change = (part: Partial<Draft>) => setTyped((before) => ({ ...before, ...part }));
  return (
    <Dialog opened onClose={close} title={bundle ? t("bundles.edit", { name: bundle.displayName }) : t("bundles.new")} size="lg">
      <form onSubmit={(event) => { event.preventDefault(); save.mutate(theirs?.etag ?? etag); }}>
        <Stack gap="sm">
          <TextInput label={t("bundles.name")} required value={draft.displayName} onChange={(event) => change({ displayName: event.currentTarget.value })} data-autofocus />
          <TextInput label={t("bundles.slug")} description={t("bundles.slug.help")} required value={draft.slug} onChange={(event) => change({ slug: event.currentTarget.value })} />
          <Textarea label={t("bundles.description")} autosize minRows={2} maxRows={10} value={draft.description} onChange={(event) => change({ description: event.currentTarget.value })} />
          <Switch label={t("bundles.enabled")} checked={draft.isEnabled} onChange={(event) => change({ isEnabled: event.currentTarget.checked })} />
          {first.error && <Failure message={first.error.message} />}
          {save.error && !isConflict && <Failure message={save.error.message} />}
          {isConflict && (
            <div role="alert">
              <Text>{t("bundles.conflict")}</Text>
              <DiffView before={pretty(theirs.bundle)} after={pretty(draft)} names={[t("bundles.conflict.theirs"), t("bundles.conflict.mine")]} />
            </div>
          )}
          <Group>
            <Button type="submit" loading={save.isPending || first.isLoading}>{t(isConflict ? "bundles.saveMine" : "bundles.save")}</Button>
            {isConflict && (
              <Button
                variant="default"
                onClick={() => {
                  setBase(theirs.bundle);
                  setTyped({});
                  setEtag(theirs.etag);
                  setTheirs(null);
                  save.reset();
                }}
              >
                {t("bundles.takeTheirs")}
              </Button>
            )}
            <Button variant="default" onClick={close}>{t("bundles.cancel")}</Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

function pretty(draft: Draft): string {
  return JSON.stringify(draft, null, 2);
}
