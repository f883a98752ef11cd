// What is published beside tools: resources that clients read, and prompts that users choose, each tried as a client would.
import { Autocomplete, Badge, Button, Card, Code, Group, Stack, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ask, complete, type Content, expand, list, type Prompt, type PromptMessage, type Resource, slotsOf, type Template } from "../api/mcp";
import { t, word } from "../messages";
import { Empty } from "../parts/empty";
import { Failure } from "../parts/failure";
import { Value } from "../parts/result-view";

type Named = { name: string; title?: string; description?: string };
// A search helps where there is more than fits on a page.
const FEW = 5;

export default function Publications() {
  const [typed, setTyped] = useState("");
  const resources = useList<Resource>("resources/list", "resources");
  const templates = useList<Template>("resources/templates/list", "resourceTemplates");
  const prompts = useList<Prompt>("prompts/list", "prompts");
  const all = [...(resources.data ?? []), ...(templates.data ?? []), ...(prompts.data ?? [])];
  const isShown = (one: Named & { uri?: string; uriTemplate?: string }) =>
    [one.name, one.title, one.description, one.uri, one.uriTemplate].some((text) => text?.toLowerCase().includes(typed.trim().toLowerCase()));
  return (
    <Stack gap="md">
      <Title order={2}>{t("nav.publications")}</Title>
      <Text>{t("published.about")}</Text>
      {all.length > FEW && <TextInput type="search" label={t("published.filter")} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} />}
      {all.length > 0 && !all.some(isShown) && <Empty text={t("published.nothing")} />}
      <Part title={t("published.prompts")} none={t("published.prompts.none")} found={prompts} typed={typed}>
        {prompts.data?.filter(isShown).map((prompt) => <OnePrompt key={prompt.name} prompt={prompt} />)}
      </Part>
      <Part title={t("published.resources")} none={t("published.resources.none")} found={resources} typed={typed}>
        {resources.data?.filter(isShown).map((one) => <OneResource key={one.uri} resource={one} template={one.uri} />)}
      </Part>
      <Part title={t("published.templates")} found={templates} typed={typed}>
        {templates.data?.filter(isShown).map((one) => <OneResource key={one.uriTemplate} resource={one} template={one.uriTemplate} />)}
      </Part>
    </Stack>
  );
}

function useList<T>(method: string, key: string) {
  return useQuery({ queryKey: ["published", method], queryFn: ({ signal }) => list<T>(method, key, signal) });
}

function Part({ title, none, found, typed, children }: { title: string; none?: string; found: ReturnType<typeof useList<Named>>; typed: string; children: ReactNode[] | undefined }) {
  // Of a search only what it finds is shown.
  if (typed.trim() && !children?.length) return null;
  return (
    <section aria-label={title}>
      <Stack gap="sm">
        <Title order={3}>{title}</Title>
        {found.isLoading && <Text role="status">{t("app.loading")}</Text>}
        {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
        {found.data?.length === 0 && none && <Empty text={none} help={t("published.help")} />}
        {children}
      </Stack>
    </section>
  );
}

function Head({ one: { name, title, description }, children }: { one: Named; children?: ReactNode }) {
  return (
    <>
      <Group gap="xs">
        <Title order={4} className="wrap">{title || name}</Title>
        {children}
      </Group>
      {description && <Text className="wrap">{description}</Text>}
    </>
  );
}

// A resource; one of a template has slots that are filled in first.
function OneResource({ resource, template }: { resource: Named & { mimeType?: string }; template: string }) {
  const [words, setWords] = useState<Record<string, string>>({});
  const slots = slotsOf(template);
  const uri = expand(template, words);
  const read = useMutation({ mutationFn: () => ask<{ contents: Content[] }>("resources/read", { uri }) });
  const isReady = slots.every(({ name, isQuery }) => isQuery || words[name]?.trim());
  return (
    <Card withBorder component="article" aria-label={resource.name}>
      <Stack gap="xs">
        <Head one={resource}>{resource.mimeType && <Badge variant="outline" color="gray" c="var(--mantine-color-text)">{resource.mimeType}</Badge>}</Head>
        <Code className="wrap">{slots.length > 0 && isReady ? uri : template}</Code>
        <form onSubmit={(event) => { event.preventDefault(); read.mutate(); }}>
          <Group align="end" gap="xs">
            {slots.map(({ name, isQuery }) => (
              <Word key={name} reference={{ type: "ref/resource", uri: template }} name={name} isNeeded={!isQuery} value={words[name] ?? ""} onChange={(value) => setWords({ ...words, [name]: value })} />
            ))}
            <Button type="submit" variant="default" loading={read.isPending} disabled={!isReady}>{t("published.read", { name: resource.name })}</Button>
          </Group>
        </form>
        <section aria-live="polite" aria-label={t("published.content", { name: resource.name })}>
          {read.error && <Failure message={read.error.message} />}
          {read.data?.contents.map((content, place) => <OneContent key={place} content={content} />)}
        </section>
      </Stack>
    </Card>
  );
}

function OneContent({ content: { text, blob, mimeType } }: { content: Content }) {
  if (text !== undefined) return <Value value={text} />;
  return <Text>{t("published.bytes", { type: mimeType ?? "", count: blob?.length ?? 0 })}</Text>;
}

function OnePrompt({ prompt }: { prompt: Prompt }) {
  const [words, setWords] = useState<Record<string, string>>({});
  const wanted = prompt.arguments ?? [];
  // What is left empty is not given.
  const given = Object.fromEntries(Object.entries(words).filter(([, value]) => value !== ""));
  const show = useMutation({ mutationFn: () => ask<{ messages: PromptMessage[] }>("prompts/get", { name: prompt.name, arguments: given }) });
  const isReady = wanted.every(({ name, required }) => !required || given[name]);
  return (
    <Card withBorder component="article" aria-label={prompt.name}>
      <Stack gap="xs">
        <Head one={prompt} />
        <form onSubmit={(event) => { event.preventDefault(); show.mutate(); }}>
          <Group align="end" gap="xs">
            {wanted.map(({ name, description, required }) => (
              <Word key={name} reference={{ type: "ref/prompt", name: prompt.name }} name={name} about={description} isNeeded={required ?? false} value={words[name] ?? ""} onChange={(value) => setWords({ ...words, [name]: value })} />
            ))}
            <Button type="submit" variant="default" loading={show.isPending} disabled={!isReady}>{t("published.show", { name: prompt.name })}</Button>
          </Group>
        </form>
        <section aria-live="polite" aria-label={t("published.content", { name: prompt.name })}>
          {show.error && <Failure message={show.error.message} />}
          {show.data?.messages.map((message, place) => (
            <div key={place}>
              <Text fw={600} size="sm" mt="xs">{word("published.role", message.role)}</Text>
              <Value value={typeof message.content.text === "string" ? message.content.text : message.content} />
            </div>
          ))}
        </section>
      </Stack>
    </Card>
  );
}

// One word of an address or a prompt, with those that the server offers for it.
function Word({ reference, name, about, isNeeded, value, onChange }: { reference: Record<string, string>; name: string; about?: string | undefined; isNeeded: boolean; value: string; onChange: (value: string) => void }) {
  const [begun] = useDebouncedValue(value, 150);
  const offered = useQuery({
    queryKey: ["published", "words", reference, name, begun],
    queryFn: ({ signal }) => complete(reference, name, begun, signal),
    placeholderData: (before) => before,
    retry: false,
  });
  return (
    <Autocomplete
      label={isNeeded ? name : t("published.optional", { name })}
      description={about}
      withAsterisk={isNeeded}
      data={[...new Set(offered.data ?? [])]}
      filter={({ options }) => options}
      value={value}
      onChange={onChange}
    />
  );
}
