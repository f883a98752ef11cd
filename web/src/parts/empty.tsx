// What a screen says when it has nothing to show, and what to do about it.
import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

export function Empty({ text, help, children }: { text: string; help?: string; children?: ReactNode }) {
  return (
    <Stack className="empty" align="center" gap="xs" role="status">
      <Text fw={600}>{text}</Text>
      {help && <Text size="sm" ta="center">{help}</Text>}
      {children}
    </Stack>
  );
}
