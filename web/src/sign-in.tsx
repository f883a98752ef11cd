// Who uses the page: the local user, or a person who signed in by a one-time link or with a token.
import { Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import { Refusal, refusalOf, setCsrf, SIGN_IN_NEEDED } from "./api/client";
import { t } from "./messages";
import { Dialog } from "./parts/dialog";
import { Failure } from "./parts/failure";

const PATH = "/ui/session";
const PERSON = ["person"] as const;

export interface Person {
  caller: string;
  scopes: string[];
  csrf: string;
}

const NOBODY: Person = { caller: "", scopes: [], csrf: "" };
const WhoContext = createContext<Person>(NOBODY);

export function useWho(): Person {
  return useContext(WhoContext);
}

async function readPerson(): Promise<Person> {
  const answer = await fetch(PATH, { credentials: "same-origin" });
  if (answer.status === 401) return NOBODY;
  const body: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw refusalOf(body, answer);
  const person = body as Person;
  setCsrf(person.csrf);
  return person;
}

async function signIn(proof: { code: string } | { token: string }): Promise<void> {
  const answer = await fetch(PATH, {
    method: "POST",
    credentials: "same-origin",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(proof),
  });
  if (!answer.ok) throw refusalOf(await answer.json().catch(() => null), answer);
}

// A one-time link ends with #sign-in=CODE; the code stays out of logs, which never see what follows a #.
function takeCode(back = "#/"): string | null {
  const found = /^#sign-in=([\w-]+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", back);
  return found[1] ?? null;
}

// A link that is opened where the page is open already only changes what follows the #. This listener is there before that of the router, so
// that the screen stays, with everything typed into it.
let onCode: (code: string) => void = () => undefined;
window.addEventListener("hashchange", ({ oldURL }) => {
  const code = takeCode(new URL(oldURL).hash || "#/");
  if (code) onCode(code);
});

export function SignInFrame({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [code] = useState(takeCode);
  const byCode = useMutation({ mutationFn: signIn, onSettled: () => queries.invalidateQueries({ queryKey: PERSON }) });
  const person = useQuery({ queryKey: PERSON, queryFn: readPerson, enabled: code === null || byCode.isSuccess || byCode.isError });
  useEffect(() => {
    if (code) byCode.mutate({ code });
    onCode = (later) => byCode.mutate({ code: later }, { onSuccess: () => need(false) });
  }, [code]);

  // Once somebody was there the screen stays as it is, with everything typed into it, and the question comes in front of it.
  const [last, setLast] = useState(NOBODY);
  const [isNeeded, need] = useState(false);
  useEffect(() => {
    if (person.data?.caller) setLast(person.data);
  }, [person.data]);
  useEffect(() => {
    const ask = () => need(true);
    window.addEventListener(SIGN_IN_NEEDED, ask);
    return () => window.removeEventListener(SIGN_IN_NEEDED, ask);
  }, []);
  const who = person.data?.caller ? person.data : last;

  // Everything is read anew for another person, once the page knows what that one may read.
  const known = useRef("");
  useEffect(() => {
    const now = person.data?.caller ? JSON.stringify(person.data) : known.current;
    const isOther = known.current !== "" && known.current !== now;
    known.current = now;
    if (isOther) void queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== PERSON[0] });
  }, [person.data, queries]);

  if (person.error && !who.caller) return <Failure message={person.error.message} retry={() => void person.refetch()} />;
  if (!person.data) return <Text role="status">{t("app.loading")}</Text>;
  return (
    <WhoContext value={who}>
      {byCode.error && <Failure message={byCode.error.message} />}
      {who.caller ? children : <main><SignInForm opened onClose={() => undefined} /></main>}
      {who.caller && <SignInForm opened={isNeeded} onClose={() => need(false)} ended />}
    </WhoContext>
  );
}

export function SignInButton() {
  const who = useWho();
  const queries = useQueryClient();
  const [opened, open] = useState(false);
  const leave = useMutation({
    mutationFn: async () => {
      const answer = await fetch(PATH, { method: "DELETE", credentials: "same-origin", headers: { "x-toolcrib-csrf": who.csrf } });
      if (!answer.ok) throw new Refusal({ detail: answer.statusText });
      setCsrf("");
    },
    onSettled: () => queries.invalidateQueries({ queryKey: PERSON }),
  });
  if (who.csrf) return <Button variant="default" size="compact-sm" onClick={() => leave.mutate()}>{t("sign.out")}</Button>;
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={() => open(true)}>{t("sign.in")}</Button>
      <SignInForm opened={opened} onClose={() => open(false)} />
    </>
  );
}

function SignInForm({ opened, onClose, ended = false }: { opened: boolean; onClose: () => void; ended?: boolean }) {
  const [token, setToken] = useState("");
  const queries = useQueryClient();
  const enter = useMutation({
    mutationFn: signIn,
    onSuccess: () => {
      setToken("");
      onClose();
      return queries.invalidateQueries({ queryKey: PERSON });
    },
  });
  return (
    <Dialog opened={opened} onClose={onClose} title={t("sign.in")}>
      <form onSubmit={(event) => { event.preventDefault(); enter.mutate({ token: token.trim() }); }}>
        <Stack gap="sm">
          {ended && <Text role="alert">{t("sign.ended")}</Text>}
          <PasswordInput label={t("sign.token")} description={t("sign.token.help")} value={token} onChange={(event) => setToken(event.currentTarget.value)} data-autofocus autoComplete="off" />
          <Text size="sm">{t("sign.link.help")}</Text>
          {enter.error && <Failure message={enter.error.message} />}
          <Group><Button type="submit" loading={enter.isPending} disabled={!token.trim()}>{t("sign.in")}</Button></Group>
        </Stack>
      </form>
    </Dialog>
  );
}
