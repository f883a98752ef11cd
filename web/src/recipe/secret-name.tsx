// A secret by its name, with the names that the server knows.
import { Autocomplete } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { read } from "../api/client";
import { t } from "../messages";
import { useWho } from "../sign-in";
import { isName } from "./model";

interface Given {
  label: string;
  value: string;
  onChange: (name: string) => void;
  description?: string | undefined;
  isNeeded?: boolean | undefined;
  // The list of names belongs to the popover that the field stands in: a click in it must not close the popover.
  inPopover?: boolean;
}

export function SecretName({ label, value, onChange, description, isNeeded, inPopover }: Given) {
  const who = useWho();
  const found = useQuery({
    queryKey: ["access", "secrets"],
    queryFn: ({ signal }) => read<{ secrets: { name: string }[] }>("/ui/access", {}, signal),
    enabled: who.scopes.includes("manage"),
  });
  const names = (found.data?.secrets ?? []).map((secret) => secret.name);
  const name = value.trim().toUpperCase();
  const isKnown = names.includes(value.trim()) || names.includes(name);
  return (
    <Autocomplete
      label={label}
      withAsterisk={isNeeded}
      description={[description, isKnown ? t("recipe.secret.known") : t("recipe.secret.help", { name: name || "NAME" })].filter(Boolean).join(" ")}
      data={names}
      comboboxProps={{ withinPortal: !inPopover }}
      value={value}
      error={value === "" || isName(value.trim()) ? undefined : t("recipe.name.wrong")}
      onChange={onChange}
    />
  );
}
