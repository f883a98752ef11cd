// What a running tool tells: how far it is, and what it has yielded so far, as text and never as markup.
import { Code, Group, Progress, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { Progress as Figures, Told } from "../api/stream";
import { t } from "../messages";

const SHOWN = 20_000;
const WAIT_MS = 60;

export interface Live {
  text: string;
  chunks: number;
  figures: Figures | null;
}

const NOTHING: Live = { text: "", chunks: 0, figures: null };

// Collects what is heard and shows it a few times a second: a page that draws every chunk of a flood does nothing else.
export function useLive(): { live: Live; hear: (told: Told) => void; clear: () => void } {
  const [live, show] = useState(NOTHING);
  const known = useRef(NOTHING);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  function draw() {
    timer.current = undefined;
    show(known.current);
  }
  function hear(told: Told) {
    if (told.name === "progress") known.current = { ...known.current, figures: told.data };
    else {
      const value = told.data.value;
      const text = typeof value === "string" ? value : `${JSON.stringify(value)}\n`;
      known.current = { ...known.current, chunks: told.data.number, text: (known.current.text + text).slice(-SHOWN) };
    }
    timer.current ??= setTimeout(draw, WAIT_MS);
  }
  function clear() {
    clearTimeout(timer.current);
    known.current = NOTHING;
    draw();
  }
  return { live, hear, clear };
}

export function LiveView({ live }: { live: Live }) {
  const { figures } = live;
  const share = figures?.total ? Math.min(100, Math.max(0, (100 * figures.progress) / figures.total)) : null;
  return (
    <Stack gap="xs">
      {figures && (
        <Group gap="xs">
          {share !== null && <Progress value={share} w={200} aria-label={t("tool.progress")} />}
          <Text size="sm" className="wrap">{`${figures.progress}${figures.total === null ? "" : ` / ${figures.total}`} ${figures.message}`}</Text>
        </Group>
      )}
      {live.chunks > 0 && (
        <>
          <Text size="sm">{t("tool.chunks", { count: live.chunks })}</Text>
          <Code block className="wrap scroll" tabIndex={0}>{live.text}</Code>
        </>
      )}
    </Stack>
  );
}
