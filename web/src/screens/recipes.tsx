// The recipe builder: an HTTP tool without writing JSON.
import { Alert, Anchor, Button, Card, Checkbox, Code, Group, SegmentedControl, Select, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link } from "wouter";
import { api, type CallResult, refusalOf, take } from "../api/client";
import { t } from "../messages";
import { Failure } from "../parts/failure";
import { ResultView } from "../parts/result-view";
import { AnswerTree } from "../recipe/answer-tree";
import { expressionOf, problemsOf, toDocument } from "../recipe/document";
import { type Answer, assign, EMPTY, type Input, type InputType, type Keep, moveStep, nameFor, outputsBefore, type Part, type Path, type Recipe, removeStep, type Step } from "../recipe/model";
import { PartEditor } from "../recipe/part-editor";
import { readStart } from "../recipe/start";
import { newBundleId, slugFor } from "../ids";

const Canvas = lazy(() => import("../recipe/canvas"));
const PLACES = ["path", "query", "header", "body"] as const;
const TYPES: InputType[] = ["string", "integer", "number", "boolean"];

export default function Recipes() {
  const [recipe, setRecipe] = useState<Recipe>(EMPTY);
  const [view, setView] = useState<"list" | "canvas">("list");
  const setStep = (place: number, step: Step) => setRecipe({ ...recipe, steps: recipe.steps.map((one, at) => (at === place ? step : one)) });
  return (
    <Stack gap="md">
      <Title order={2}>{t("recipe.title")}</Title>
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
            recipe.steps.map((step, place) => (
              <StepCard key={step.name} recipe={recipe} place={place} onRecipe={setRecipe} onStep={(next) => setStep(place, next)} />
            ))
          )}
          <Inputs recipe={recipe} onChange={setRecipe} />
          <Trial recipe={recipe} onAnswer={(answer) => setStep(recipe.steps.length - 1, { ...(recipe.steps.at(-1) as Step), answer })} />
          <Save recipe={recipe} onChange={setRecipe} />
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
    const start = readStart(text, nameFor(`request_${recipe.steps.length + 1}`, recipe.steps.map((step) => step.name)));
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

function StepCard({ recipe, place, onRecipe, onStep }: { recipe: Recipe; place: number; onRecipe: (recipe: Recipe) => void; onStep: (step: Step) => void }) {
  const step = recipe.steps[place] as Step;
  const outputs = outputsBefore(recipe, place);
  const taken = recipe.inputs.map((input) => input.name);
  return (
    <Card withBorder component="section" aria-label={step.name}>
      <Group justify="space-between" align="start">
        <div>
          <Title order={4}>{place + 1}. {step.name}</Title>
          <Code className="wrap">{step.method} {step.origin}</Code>
        </div>
        <Group gap="xs">
          <Button size="compact-sm" variant="default" disabled={place === 0} aria-label={t("recipe.step.up", { name: step.name })} onClick={() => onRecipe(moveStep(recipe, place, -1))}>↑</Button>
          <Button size="compact-sm" variant="default" disabled={place === recipe.steps.length - 1} aria-label={t("recipe.step.down", { name: step.name })} onClick={() => onRecipe(moveStep(recipe, place, 1))}>↓</Button>
          <Button size="compact-sm" variant="default" aria-label={t("recipe.step.remove", { name: step.name })} onClick={() => onRecipe(removeStep(recipe, place))}>✕</Button>
        </Group>
      </Group>
      <Text mt="sm" fw={600}>{t("recipe.vary")}</Text>
      {PLACES.map((where) => {
        const parts = step.parts.filter((part) => part.place === where);
        if (parts.length === 0) return null;
        return (
          <Group key={where} gap="xs" mt="xs" role="group" aria-label={t(`recipe.place.${where}`)}>
            <Text size="sm" w={90}>{t(`recipe.place.${where}`)}</Text>
            {parts.map((part) => (
              <PartEditor
                key={part.id}
                part={part}
                outputs={outputs}
                taken={taken}
                onChange={(source) => onRecipe(assign(recipe, place, part.id, source))}
                onFix={(value) => onRecipe(fixed(recipe, place, part, value))}
              />
            ))}
          </Group>
        );
      })}
      <KeepBox step={step} onKeep={(keep) => onStep({ ...step, keep })} />
    </Card>
  );
}

function fixed(recipe: Recipe, place: number, part: Part, value: string): Recipe {
  const typed = typeof part.value === "number" && value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : typeof part.value === "boolean" ? value === "true" : value;
  const freed = assign(recipe, place, part.id, { kind: "fixed" });
  return { ...freed, steps: freed.steps.map((step, at) => (at === place ? { ...step, parts: step.parts.map((one) => (one.id === part.id ? { ...one, value: typed } : one)) } : step)) };
}

function KeepBox({ step, onKeep }: { step: Step; onKeep: (keep: Keep) => void }) {
  if (!step.answer) return <Text mt="sm" size="sm">{t("recipe.answer.none")}</Text>;
  const path = step.keep.kind === "path" ? step.keep.path : undefined;
  const number = path?.findIndex((word) => typeof word === "number") ?? -1;
  return (
    <Stack gap="xs" mt="sm">
      <Text fw={600}>{t("recipe.keep")}</Text>
      <AnswerTree
        answer={step.answer}
        picked={path}
        onPick={(picked: Path) => onKeep(step.answer?.kind === "text" ? { kind: "element", name: String(picked[0]) } : picked.length ? { kind: "path", path: picked } : { kind: "all" })}
      />
      <Group>
        <Button size="compact-sm" variant="default" onClick={() => onKeep({ kind: "all" })}>{t("recipe.keep.all")}</Button>
        {path && number >= 0 && (
          <Button size="compact-sm" variant="default" onClick={() => onKeep({ kind: "path", path: path.map((word, place) => (place === number ? "*" : word)) })}>{t("recipe.keep.each")}</Button>
        )}
        <Text size="sm">{t("recipe.kept")}: <Code>{expressionOf(step.keep) || t("recipe.keep.all")}</Code></Text>
      </Group>
    </Stack>
  );
}

function Inputs({ recipe, onChange }: { recipe: Recipe; onChange: (recipe: Recipe) => void }) {
  const set = (name: string, change: Partial<Input>) => onChange({ ...recipe, inputs: recipe.inputs.map((input) => (input.name === name ? { ...input, ...change } : input)) });
  return (
    <Stack gap="xs">
      <Title order={3}>{t("recipe.inputs")}</Title>
      {recipe.inputs.length === 0 && <Text>{t("recipe.inputs.none")}</Text>}
      {recipe.inputs.map((input) => (
        <Card key={input.name} withBorder component="section" aria-label={input.name}>
          <Group align="end">
            <Text fw={600} w={120} className="wrap">{input.name}</Text>
            <Select label={t("recipe.input.type")} w={150} allowDeselect={false} data={TYPES.map((type) => ({ value: type, label: t(`recipe.type.${type}`) }))} value={input.type} onChange={(type) => set(input.name, { type: type as InputType })} />
            <TextInput label={t("recipe.input.description")} style={{ flex: 1, minWidth: "12rem" }} value={input.description} onChange={(event) => set(input.name, { description: event.currentTarget.value })} />
            <Checkbox label={t("recipe.input.required")} checked={input.required} onChange={(event) => set(input.name, { required: event.currentTarget.checked })} />
            {input.type === "string" && (
              <TextInput label={t("recipe.input.choices")} value={input.choices.join(", ")} onChange={(event) => set(input.name, { choices: event.currentTarget.value.split(",").map((word) => word.trim()).filter(Boolean) })} />
            )}
          </Group>
        </Card>
      ))}
    </Stack>
  );
}

function Trial({ recipe, onAnswer }: { recipe: Recipe; onAnswer: (answer: Answer) => void }) {
  const examples = Object.fromEntries(recipe.steps.flatMap((step) => step.parts.flatMap((part) => (part.source.kind === "input" ? [[part.source.name, String(part.value ?? "")]] : []))));
  const [typed, setTyped] = useState<Record<string, string>>({});
  const attempt = useMutation({
    mutationFn: async (): Promise<CallResult> => {
      const args = Object.fromEntries(recipe.inputs.map((input) => [input.name, toValue(typed[input.name] ?? examples[input.name] ?? "", input.type)]));
      // The whole answer is wanted here, as text, so that the person sees it whatever it is, and chooses what to keep of it.
      const last: Partial<Step> = { keep: { kind: "all" }, answer: { kind: "text", text: "" } };
      const open: Recipe = { ...recipe, title: recipe.title || "Trial", description: recipe.description || "Trial", steps: recipe.steps.map((step, place) => (place === recipe.steps.length - 1 ? { ...step, ...last } : step)) };
      const document = { ...toDocument(open), outputSchema: {} };
      const answer = await api.POST("/crib/trial", { body: { document: document as unknown as Record<string, never>, args: args as Record<string, never> } });
      if (answer.data) return parsed(answer.data as CallResult);
      const failed: unknown = answer.error;
      if (typeof failed === "object" && failed !== null && "intents" in failed) return failed as CallResult;
      throw refusalOf(answer.error, answer.response);
    },
    onSuccess: (result) => {
      if (result.ok) onAnswer(typeof result.value === "string" ? { kind: "text", text: result.value } : { kind: "json", value: result.value });
    },
  });
  return (
    <Stack gap="xs">
      <Title order={3}>{t("recipe.try")}</Title>
      <Group align="end">
        {recipe.inputs.map((input) => (
          <TextInput key={input.name} label={t("recipe.try.value", { name: input.name })} value={typed[input.name] ?? examples[input.name] ?? ""} onChange={(event) => { const { value } = event.currentTarget; setTyped((before) => ({ ...before, [input.name]: value })); }} />
        ))}
        <Button onClick={() => attempt.mutate()} loading={attempt.isPending}>{t("recipe.try")}</Button>
      </Group>
      <section aria-live="polite" aria-label={t("tool.result")}>
        {attempt.error && <Failure message={attempt.error.message} />}
        {attempt.data && <ResultView result={attempt.data} />}
      </section>
    </Stack>
  );
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

function toValue(text: string, type: InputType): unknown {
  if (type === "boolean") return ["true", "yes", "1"].includes(text.trim().toLowerCase());
  if (type === "string") return text;
  return text.trim() === "" || !Number.isFinite(Number(text)) ? text : Number(text);
}

function Save({ recipe, onChange }: { recipe: Recipe; onChange: (recipe: Recipe) => void }) {
  const queries = useQueryClient();
  const bundles = useQuery({ queryKey: ["bundles"], queryFn: ({ signal }) => take(api.GET("/tools/bundles", { params: { query: { includeDisabled: true, pageSize: 256 } }, signal })) });
  const own = (bundles.data?.bundles ?? []).filter((bundle) => bundle.source === "store");
  const [bundle, setBundle] = useState<string | null>(null);
  const problems = problemsOf(recipe);
  const save = useMutation({
    mutationFn: async () => {
      const bundleID = bundle ?? own.find((one) => one.slug === "recipes")?.bundleID ?? (await makeBundle());
      const toolSlug = slugFor(recipe.title);
      for (let number = 1; ; number++) {
        const version = `v${number}`;
        const answer = await api.PUT("/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}", {
          params: { path: { bundleID, toolSlug, version } },
          body: toDocument(recipe) as never,
        });
        if (answer.response.status === 409 && number < 100) continue;
        await take(Promise.resolve(answer));
        return { slug: toolSlug, version, bundleID };
      }
    },
    onSuccess: () => queries.invalidateQueries(),
  });
  return (
    <Stack gap="xs">
      <Title order={3}>{t("recipe.save")}</Title>
      <TextInput label={t("recipe.name")} value={recipe.title} onChange={(event) => onChange({ ...recipe, title: event.currentTarget.value })} />
      <TextInput label={t("recipe.description")} description={t("recipe.description.help")} value={recipe.description} onChange={(event) => onChange({ ...recipe, description: event.currentTarget.value })} />
      <Select label={t("recipe.bundle")} placeholder={t("recipe.bundle.new")} clearable data={own.map((one) => ({ value: one.bundleID, label: one.displayName }))} value={bundle} onChange={setBundle} />
      {problems.map((line) => <Text key={line} size="sm">{line}</Text>)}
      <Group><Button onClick={() => save.mutate()} loading={save.isPending} disabled={problems.length > 0}>{t("recipe.save")}</Button></Group>
      {save.error && <Failure message={save.error.message} />}
      {save.data && (
        <Alert variant="outline" color="teal" role="status">
          <Anchor component={Link} href={`/tools/${encodeURIComponent(save.data.slug)}`}>{t("recipe.saved", { name: save.data.slug })}</Anchor>
        </Alert>
      )}
      <details><summary>{t("recipe.advanced")}</summary><Code block className="wrap scroll" tabIndex={0}>{JSON.stringify(toDocument(recipe), null, 2)}</Code></details>
    </Stack>
  );
}

async function makeBundle(): Promise<string> {
  const bundleID = newBundleId();
  await take(api.PUT("/tools/bundles/{bundleID}", { params: { path: { bundleID } }, body: { slug: "recipes", displayName: "Recipes", description: "Tools made on the web page.", isEnabled: true } }));
  return bundleID;
}
