// How a failure is shown: in the server's words, with a way to try again.
import { Alert, Button, Text } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { t } from "../messages";

export function Failure({ message, retry }: { message: string; retry?: () => void }) {
  return (
    <Alert role="alert" color="red" variant="outline" title={t("app.failed")} my="sm">
      <Text className="wrap" c="var(--mantine-color-text)">{message}</Text>
      {retry && <Button mt="sm" variant="default" onClick={retry}>{t("app.retry")}</Button>}
    </Alert>
  );
}

// How the browsers say that a file of the page could not be loaded.
const NOT_LOADED = /dynamically imported module|module script failed|preload CSS/i;

// A mistake in one screen leaves the others usable.
export class FailureBoundary extends Component<{ children: ReactNode }, { problem: Error | null }> {
  state = { problem: null as Error | null };

  static getDerivedStateFromError(problem: Error) {
    return { problem };
  }

  render() {
    const { problem } = this.state;
    if (problem === null) return this.props.children;
    // A part of the page that the server no longer has: it was updated while the page was open.
    if (NOT_LOADED.test(problem.message)) return <Failure message={t("app.updated")} retry={() => location.reload()} />;
    return <Failure message={problem.message} retry={() => this.setState({ problem: null })} />;
  }
}
