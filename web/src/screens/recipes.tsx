// The recipe builder: a tool without writing JSON, of web requests, a function of the host program, or a question to a database.
import { Alert, Anchor, Button, Code, Group, List, NativeSelect, SegmentedControl, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useParams } from "wouter";
import { api, type CallResult, readTool, refusalOf, take } from "../api/client";
import { t } from "../messages";
import { Failure } from "../parts/failure";
import { ResultView } from "../parts/result-view";
import { problemsOf, toDocument } from "../recipe/document";
import { Inputs } from "../recipe/inputs";
import { type Answer, changeStep, EMPTY, type Input, type Json, newStepName, type Recipe, type Step, withoutUnused } from "../recipe/model";
import { type Origin, Save } from "../recipe/save";
import { readStart } from "../recipe/start";
import { StepEditor } from "../recipe/step-editor";
import { type OpenedTool, openTool, writtenOf } from "../recipe/stored";
import { slugOf } from "./tools";

const Canvas = lazy(() => import("../recipe/canvas"));
const FunctionTool = lazy(() => import("../recipe/function-tool"));

const QueryTool = lazy(() => import("../recipe/query-tool"));
const KINDS = { requests: Requests, function: FunctionTool, query: QueryTool };
type Kind = keyof typeof KINDS;

export default function Recipes() {
  const { address } = useParams<{ address?: string }>();
  return address ? <StoredRecipe address={decodeURIComponent(address)} /> : <NewRecipe />;
}

function NewRecipe() {
  const [kind, choose] = useState<Kind>("requests");
  const [seen, see] = useState<Kind[]>(["requests"]);
  return (
    <Stack gap="md">
      <Title order={2}>{t("recipe.title")}</Title>
      <Group>
        <SegmentedControl size="xs"
          aria-label={t("recipe.of")}
          value={kind}
          onChange={(next) => { choose(next as Kind); see([...new Set([...seen, next as Kind])]); }}
          data={(Object.keys(KINDS) as Kind[]).map((value) => ({ value, label: t(`recipe.of.${value}`) }))}
        />
      </Group>
      {/* What was typed for one kind stays while another is looked at. */}
      {seen.map((one) => {
        const Form = KINDS[one];
        return <div key={one} hidden={one !== kind}><Suspense fallback={<Text>{t("app.loading")}</Text>}><Form /></Suspense></div>;
      })}
    </Stack>
  );
}

// A stored tool that was opened to be changed.
function StoredRecipe({ address }: { address: string }) {
  const found = useQuery({
    queryKey: ["tools", "recipe", address],
    queryFn: async ({ signal }) => {
      const tool = await readTool(address, signal);
      const path = { bundleID: tool.bundleID, toolSlug: slugOf(tool), version: tool.version };
      const stored = await take(api.GET("/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}", { params: { path }, signal }));
      return { opened: openTool(writtenOf(stored)), origin: { bundleID: stored.bundleID, slug: stored.slug, version: stored.version } };
    },
    // What a person changes here is not read anew under their hands.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const { opened, origin } = found.data ?? {};
  return (
    <Stack gap="md">
      <Anchor component={Link} href={`/tools/${encodeURIComponent(address)}`}>{t("recipe.stored.back", { name: address })}</Anchor>
      <Title order={2} className="wrap">{t("recipe.stored", { name: address })}</Title>
      {found.isLoading && <Text role="status">{t("app.loading")}</Text>}
      {found.error && <Failure message={found.error.message} retry={() => void found.refetch()} />}
      {opened === null && <Alert color="orange" variant="outline"><Text className="wrap">{t("recipe.stored.cannot")}</Text></Alert>}
      {opened && opened.kept.length > 0 && (
        <Alert color="orange" variant="outline" title={t("recipe.stored.kept")}>
          <List size="sm">{opened.kept.map((place) => <List.Item key={place}><Code className="wrap">{place}</Code></List.Item>)}</List>
        </Alert>
      )}
      {opened && <Suspense fallback={<Text>{t("app.loading")}</Text>}><OpenedRecipe opened={opened} origin={origin} /></Suspense>}
    </Stack>
  );
}

function OpenedRecipe({ opened, origin }: { opened: OpenedTool; origin: Origin | undefined }) {
  if (opened.kind === "query") return <QueryTool start={opened.recipe} asked={opened.query} origin={origin} />;
  if (opened.kind === "function") return <FunctionTool start={opened.recipe} functionKey={opened.functionKey} origin={origin} />;
  return <Requests start={opened.recipe} origin={origin} />;
}

function Requests({ start = EMPTY, origin }: { start?: Recipe; origin?: Origin | undefined }) {
  const [recipe, setRecipe] = useState<Recipe>(start);
  const [view, setView] = useState<"list" | "canvas">("list");
  return (
    <Stack gap="md">
      <StartBox recipe={recipe} onChange={setRecipe} />
      {recipe.steps.length > 0 && (
        <>
          <Group justify="space-between">
            <Title order={3}>{t("recipe.steps")}</Title>
            <SegmentedControl aria-label={t("recipe.view")} value={view} onChange={(next) => setView(next as "list" | "canvas")} data={[{ value: "list", label: t("recipe.list") }, { value: "canvas", label: t("recipe.canvas") }]} />
          </Group>
          {view === "canvas" ? (
            <Suspense fallback={<Text>{t("app.loading")}</Text>}><Canvas recipe={recipe} onChange={setRecipe} /></Suspense>
          ) : (
            recipe.steps.map((step, place) => <StepEditor key={step.id} recipe={recipe} place={place} onChange={setRecipe} />)
          )}
          <Inputs recipe={recipe} onChange={setRecipe} />
          <Trial recipe={recipe} onAnswer={(place, answer) => setRecipe((now) => changeStep(now, place, (step) => ({ ...step, answer })))} />
          <Save recipe={recipe} onChange={setRecipe} document={toDocument(recipe)} problems={problemsOf(recipe)} origin={origin} />
        </>
      )}
    </Stack>
  );
}

function StartBox({ recipe, onChange }: { recipe: Recipe; onChange: (recipe: Recipe) => void }) {
  const [text, setText] = useState("");
  const [reason, setReason] = useState("");
  // An example answer may come before the request that gives it.
  const [waiting, wait] = useState<Answer | null>(null);
  function use() {
    const start = readStart(text, newStepName(recipe));
    if (start.kind === "nothing") return setReason(start.reason);
    setReason("");
    if (start.kind === "request") {
      setText("");
      wait(null);
      return onChange({ ...recipe, steps: [...recipe.steps, waiting ? { ...start.step, answer: waiting } : start.step] });
    }
    const last = recipe.steps.at(-1);
    setText("");
    if (!last) return wait(start.answer);
    return onChange({ ...recipe, steps: [...recipe.steps.slice(0, -1), { ...last, answer: start.answer, keep: { kind: "all" } }] });
  }
  return (
    <Stack gap="xs">
      <Textarea label={recipe.steps.length ? t("recipe.step.add") : t("recipe.start")} description={t("recipe.start.help")} autosize minRows={2} maxRows={12} value={text} error={reason || undefined} onChange={(event) => setText(event.currentTarget.value)} />
      {waiting && <Text role="status">{t("recipe.start.waiting")}</Text>}
      <Group><Button onClick={use} disabled={!text.trim()}>{t("recipe.start.use")}</Button></Group>
    </Stack>
  );
}

function Trial({ recipe, onAnswer }: { recipe: Recipe; onAnswer: (place: number, answer: Answer) => void }) {
  const examples = Object.fromEntries(recipe.steps.flatMap((step) => step.parts.flatMap((part) => (part.source.kind === "input" ? [[part.source.name, toText(part.value)]] : []))));
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [wanted, setWanted] = useState<string | null>(null);
  const found = recipe.steps.findIndex((step) => step.id === wanted);
  const place = found < 0 ? recipe.steps.length - 1 : found;
  const tried = withoutUnused({ ...recipe, steps: recipe.steps.slice(0, place + 1) });
  const attempt = useMutation({
    mutationFn: async (): Promise<CallResult> => {
      const args = Object.fromEntries(tried.inputs.map((input) => [input.name, toValue(typed[input.name] ?? examples[input.name] ?? "", input)]));
      const open = changeStep({ ...tried, title: recipe.title || "Trial", description: recipe.description || "Trial" }, place, whole);
      const document = { ...toDocument(open), outputSchema: {} };
      const answer = await api.POST("/crib/trial", { body: { document: document as unknown as Record<string, never>, args: args as Record<string, never> } });
      if (answer.data) return parsed(answer.data as CallResult);
      const failed: unknown = answer.error;
      if (typeof failed === "object" && failed !== null && "intents" in failed) return failed as CallResult;
      throw refusalOf(answer.error, answer.response);
    },
    onSuccess: (result) => {
      // The example of an answer is one page; of several pages only their items are known.
      if (!result.ok || hasPages(recipe.steps[place])) return;
      onAnswer(place, typeof result.value === "string" ? { kind: "text", text: result.value } : { kind: "json", value: result.value });
    },
  });
  return (
    <Stack gap="xs">
      <Title order={3}>{t("recipe.try")}</Title>
      <Group align="end">
        {recipe.steps.length > 1 && (
          <NativeSelect label={t("recipe.try.until")} data={recipe.steps.map((step, at) => ({ value: step.id, label: `${at + 1}. ${step.name}` }))} value={recipe.steps[place]?.id ?? ""} onChange={(event) => setWanted(event.currentTarget.value)} />
        )}
        {tried.inputs.map((input) => {
          const given = { label: t("recipe.try.value", { name: input.name }), value: typed[input.name] ?? examples[input.name] ?? "" };
          const set = (value: string) => setTyped((before) => ({ ...before, [input.name]: value }));
          if (input.type === "array") return <Textarea key={input.name} {...given} description={t("recipe.try.lines")} autosize onChange={(event) => set(event.currentTarget.value)} />;
          return <TextInput key={input.name} {...given} onChange={(event) => set(event.currentTarget.value)} />;
        })}
        <Button onClick={() => attempt.mutate()} loading={attempt.isPending}>{t("recipe.try")}</Button>
      </Group>
      <section aria-live="polite" aria-label={t("tool.result")}>
        {attempt.error && <Failure message={attempt.error.message} />}
        {attempt.data && <ResultView result={attempt.data} />}
      </section>
    </Stack>
  );
}

function hasPages(step: Step | undefined): boolean {
  return step !== undefined && step.run.pages.type !== "none";
}

// The whole answer is wanted in a trial, as text, so that the person sees it whatever it is, and chooses what to keep of it.
// Pages are read as JSON.
function whole(step: Step): Step {
  return { ...step, keep: { kind: "all" }, answer: hasPages(step) ? null : { kind: "text", text: "" } };
}

// The text of an answer as what it is: JSON, or text.
function parsed(result: CallResult): CallResult {
  if (!result.ok || typeof result.value !== "string") return result;
  try {
    return { ...result, value: JSON.parse(result.value) as unknown };
  } catch {
    return result;
  }
}

function toText(value: Json): string {
  return Array.isArray(value) ? value.map(toText).join("\n") : String(value ?? "");
}

function toValue(text: string, { type, items }: Pick<Input, "type" | "items">): unknown {
  if (type === "array") return text.split("\n").filter((line) => line.trim()).map((line) => toValue(line.trim(), { type: items, items: "string" }));
  if (type === "boolean") return ["true", "yes", "1"].includes(text.trim().toLowerCase());
  if (type === "string") return text;
  return text.trim() === "" || !Number.isFinite(Number(text)) ? text : Number(text);
}
