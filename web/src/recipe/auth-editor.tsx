// How a request proves who sends it, as a form without JSON.
import { Button, Checkbox, Fieldset, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { type MessageId, t, word } from "../messages";
import { type Auth, AUTH_TYPES, type AuthField, type AuthType, type AuthValue, fieldsOf, labelOf, type Pair, SIGNED_SLOTS, valueOf } from "./auth";
import { SecretName } from "./secret-name";

export function AuthEditor({ auth, onChange }: { auth: Auth; onChange: (auth: Auth) => void }) {
  const set = (key: string, value: AuthValue) => onChange({ ...auth, values: { ...auth.values, [key]: value } });
  return (
    <Stack gap="xs">
      <NativeSelect
        label={t("recipe.auth.type")}
        description={t(`recipe.auth.${auth.type}.help` as MessageId)}
        data={AUTH_TYPES.map((type) => ({ value: type, label: t(`recipe.auth.${type}` as MessageId) }))}
        value={auth.type}
        onChange={(event) => onChange({ type: event.currentTarget.value as AuthType, values: {} })}
      />
      {fieldsOf(auth).map((field) => <Field key={field.key} auth={auth} field={field} value={valueOf(auth, field.key)} onChange={(value) => set(field.key, value)} />)}
    </Stack>
  );
}

function Field({ auth, field, value, onChange }: { auth: Auth; field: AuthField; value: AuthValue; onChange: (value: AuthValue) => void }) {
  const { kind, isNeeded, choices = [] } = field;
  const label = labelOf(auth, field.key);
  if (kind === "secret") return <SecretName label={label} isNeeded={isNeeded} value={String(value)} onChange={onChange} />;
  if (kind === "switch") return <Checkbox label={label} checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
  if (kind === "choice") {
    return (
      <NativeSelect
        label={label}
        data={choices.map((one) => ({ value: one, label: word("recipe.auth.choice", one) }))}
        value={String(value)}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  if (kind === "pairs") return <Pairs label={label} pairs={value as Pair[]} onChange={onChange} />;
  const text = String(value);
  return (
    <>
      <TextInput label={label} withAsterisk={isNeeded} description={kind === "words" ? t("recipe.auth.words") : undefined} inputMode={kind === "number" ? "numeric" : undefined} value={text} onChange={(event) => onChange(event.currentTarget.value)} />
      {kind === "signed" && (
        <Group gap={4} role="group" aria-label={t("recipe.auth.insert")}>
          <Text size="sm">{t("recipe.auth.insert")}</Text>
          {SIGNED_SLOTS.map((slot) => (
            <Button key={slot} size="compact-xs" variant="default" onClick={() => onChange(`${text}\${${slot}}`)}>{t(`recipe.auth.slot.${slot}` as MessageId)}</Button>
          ))}
        </Group>
      )}
    </>
  );
}

// Names with their values, such as headers: one row each.
function Pairs({ label, pairs, onChange }: { label: string; pairs: Pair[]; onChange: (pairs: Pair[]) => void }) {
  const set = (place: number, change: Partial<Pair>) => onChange(pairs.map((pair, at) => (at === place ? { ...pair, ...change } : pair)));
  return (
    <Fieldset legend={label}>
      <Stack gap="xs">
        {pairs.map((pair, place) => (
          <Group key={place} gap="xs" align="end">
            <TextInput label={t("recipe.pair.name")} style={{ flex: 1, minWidth: "8rem" }} value={pair.name} onChange={(event) => set(place, { name: event.currentTarget.value })} />
            <TextInput label={t("recipe.pair.value")} style={{ flex: 1, minWidth: "8rem" }} value={pair.value} onChange={(event) => set(place, { value: event.currentTarget.value })} />
            <Button variant="default" aria-label={t("recipe.pair.remove", { name: pair.name || String(place + 1) })} onClick={() => onChange(pairs.filter((_, at) => at !== place))}>✕</Button>
          </Group>
        ))}
        <Group><Button size="compact-sm" variant="default" onClick={() => onChange([...pairs, { name: "", value: "" }])}>{t("recipe.pair.add")}</Button></Group>
      </Stack>
    </Fieldset>
  );
}
