// Name a tool, choose its bundle, and store it as a new version; one that was opened stays in its place.
import { Alert, Anchor, Button, Code, Group, Select, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, take } from "../api/client";
import { newBundleId, nextVersion, slugFor } from "../ids";
import { t } from "../messages";
import { Failure } from "../parts/failure";
import type { ToolDocument } from "./document";
import type { Recipe } from "./model";

// The version of a stored tool that was opened.
export interface Origin {
  bundleID: string;
  slug: string;
  version: string;
}

const MOST_VERSIONS = 100;

export function Save({ recipe, onChange, document, problems, origin }: { recipe: Recipe; onChange: (recipe: Recipe) => void; document: ToolDocument; problems: string[]; origin?: Origin | undefined }) {
  const queries = useQueryClient();
  const bundles = useQuery({ queryKey: ["bundles"], queryFn: ({ signal }) => take(api.GET("/tools/bundles", { params: { query: { includeDisabled: true, pageSize: 256 } }, signal })) });
  const own = (bundles.data?.bundles ?? []).filter((bundle) => bundle.source === "store");
  const [bundle, setBundle] = useState<string | null>(null);
  const save = useMutation({
    mutationFn: async () => {
      const bundleID = origin?.bundleID ?? bundle ?? own.find((one) => one.slug === "recipes")?.bundleID ?? (await makeBundle());
      const toolSlug = origin?.slug ?? slugFor(recipe.title);
      let version = origin ? nextVersion(origin.version) : "v1";
      for (let tries = 1; ; tries++) {
        const answer = await api.PUT("/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}", {
          params: { path: { bundleID, toolSlug, version } },
          body: document as never,
        });
        if (answer.response.status !== 409 || tries === MOST_VERSIONS) return take(Promise.resolve(answer));
        version = nextVersion(version);
      }
    },
    onSuccess: () => queries.invalidateQueries(),
  });
  return (
    <Stack gap="xs">
      <Title order={3}>{t(origin ? "recipe.save.version" : "recipe.save")}</Title>
      <TextInput label={t("recipe.name")} value={recipe.title} onChange={(event) => onChange({ ...recipe, title: event.currentTarget.value })} />
      <Textarea label={t("recipe.description")} description={t("recipe.description.help")} autosize maxRows={8} value={recipe.description} onChange={(event) => onChange({ ...recipe, description: event.currentTarget.value })} />
      {!origin && <Select label={t("recipe.bundle")} placeholder={t("recipe.bundle.new")} clearable data={own.map((one) => ({ value: one.bundleID, label: one.displayName }))} value={bundle} onChange={setBundle} />}
      {problems.map((line) => <Text key={line} size="sm">{line}</Text>)}
      <Group><Button onClick={() => save.mutate()} loading={save.isPending} disabled={problems.length > 0}>{t(origin ? "recipe.save.version" : "recipe.save")}</Button></Group>
      {save.error && <Failure message={save.error.message} />}
      {save.data && (
        <Alert variant="outline" color="teal" role="status">
          <Anchor component={Link} href={`/tools/${encodeURIComponent(`${save.data.bundleSlug}/${save.data.slug}@${save.data.version}`)}`}>{t("recipe.saved", { name: `${save.data.slug} ${save.data.version}` })}</Anchor>
        </Alert>
      )}
      <details><summary>{t("recipe.advanced")}</summary><Code block className="wrap scroll" tabIndex={0}>{JSON.stringify(document, null, 2)}</Code></details>
    </Stack>
  );
}

async function makeBundle(): Promise<string> {
  const bundleID = newBundleId();
  await take(api.PUT("/tools/bundles/{bundleID}", { params: { path: { bundleID } }, body: { slug: "recipes", displayName: t("recipe.bundle.name"), description: t("recipe.bundle.about"), isEnabled: true } }));
  return bundleID;
}
