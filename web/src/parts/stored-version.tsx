// What a person does with a stored version of a tool: write the next one beside it, or delete it.
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { api, refusalOf, type Schemas, take, type Tool } from "../api/client";
import { nextVersion } from "../ids";
import { type MessageId, t } from "../messages";
import { writtenOf } from "../recipe/stored";
import { useFeatures } from "../screens";
import { slugOf } from "../screens/tools";
import { useWho } from "../sign-in";
import { Dialog } from "./dialog";
import { Failure } from "./failure";
import JsonEditor from "./json-editor";

type Stored = Schemas["Tool"];
// The bundles of Toolcrib itself.
const OURS = new Set(["builtin", "system"]);
const PATH = "/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}";

export default function StoredVersion({ tool }: { tool: Tool }) {
  const who = useWho();
  const features = useFeatures();
  const queries = useQueryClient();
  const [, go] = useLocation();
  const [opened, open] = useState<"edit" | "delete" | null>(null);
  const path = { bundleID: tool.bundleID, toolSlug: slugOf(tool), version: tool.version };
  const found = useQuery({
    queryKey: ["tools", "stored", tool.address],
    queryFn: ({ signal }) => take(api.GET(PATH, { params: { path }, signal })),
    enabled: who.scopes.includes("manage"),
  });
  const remove = useMutation({
    mutationFn: async () => {
      const answer = await api.DELETE(PATH, { params: { path } });
      if (!answer.response.ok) throw refusalOf(answer.error, answer.response);
    },
    onSuccess: () => {
      go("/tools");
      // Data that is only stale would be shown again under the address that is gone.
      queries.removeQueries({ queryKey: ["tools", "one"] });
      return queries.invalidateQueries();
    },
  });
  if (!found.data) return null;
  // Code is edited where it is written, and nowhere else.
  if (found.data.source !== "store") return <Text mt="md" className="wrap">{t(whereEdited(tool), { place: tool.origin || tool.bundle })}</Text>;
  return (
    <>
      <Group mt="md">
        {features.has("recipes") && <Button component={Link} href={`/recipes/${encodeURIComponent(tool.address)}`} variant="default">{t("tool.edit.builder")}</Button>}
        <Button variant="default" onClick={() => open("edit")}>{t("tool.edit")}</Button>
        <Button variant="default" onClick={() => open("delete")}>{t("tool.delete")}</Button>
      </Group>
      {opened === "edit" && <Editor stored={found.data} close={() => open(null)} />}
      <Dialog opened={opened === "delete"} onClose={() => open(null)} title={t("tool.delete")}>
        <Text className="wrap">{t("tool.delete.sure", { name: tool.address })}</Text>
        {remove.error && <Failure message={remove.error.message} />}
        <Group mt="md">
          <Button color="red.9" onClick={() => remove.mutate()} loading={remove.isPending}>{t("tool.delete.yes")}</Button>
          <Button variant="default" onClick={() => open(null)}>{t("bundles.cancel")}</Button>
        </Group>
      </Dialog>
    </>
  );
}

function whereEdited({ bundle, kind }: Tool): MessageId {
  if (OURS.has(bundle)) return "tool.edit.builtin";
  return kind === "function" ? "tool.edit.host" : "tool.edit.files";
}

function Editor({ stored, close }: { stored: Stored; close: () => void }) {
  const queries = useQueryClient();
  const [, go] = useLocation();
  const [slug, setSlug] = useState(stored.slug);
  const [version, setVersion] = useState(() => nextVersion(stored.version));
  const [text, setText] = useState(() => JSON.stringify(writtenOf(stored), null, 2));
  const save = useMutation({
    mutationFn: () =>
      take(api.PUT(PATH, { params: { path: { bundleID: stored.bundleID, toolSlug: slug.trim(), version: version.trim() } }, body: JSON.parse(text) as never })),
    onSuccess: async (made) => {
      await queries.invalidateQueries();
      go(`/tools/${encodeURIComponent(`${made.bundleSlug}/${made.slug}@${made.version}`)}`);
    },
  });
  return (
    <Dialog opened onClose={close} title={t("tool.edit")} size="xl">
      <form onSubmit={(event) => { event.preventDefault(); save.mutate(); }}>
        <Stack gap="sm">
          <Text size="sm">{t("tool.edit.help")}</Text>
          <Group>
            <TextInput label={t("tool.edit.slug")} required value={slug} onChange={(event) => setSlug(event.currentTarget.value)} />
            <TextInput label={t("tool.edit.version")} required value={version} onChange={(event) => setVersion(event.currentTarget.value)} />
          </Group>
          <JsonEditor value={text} onChange={setText} label={t("tool.edit.document")} />
          {save.error && <Failure message={save.error.message} />}
          <Group>
            <Button type="submit" loading={save.isPending}>{t("tool.edit.save")}</Button>
            <Button variant="default" onClick={close}>{t("bundles.cancel")}</Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
