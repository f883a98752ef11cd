// Two texts as one list of lines; a sign says which text a line is of, besides the colour.
import { t } from "../messages";
import { diffLines } from "./diff";

const SIGNS = { same: " ", removed: "−", added: "+" };
const SHOWN = 2_000;

export function DiffView({ before, after, names }: { before: string; after: string; names: [string, string] }) {
  const lines = diffLines(before, after).slice(0, SHOWN);
  const title = (kind: keyof typeof SIGNS) =>
    kind === "same" ? t("diff.same") : kind === "removed" ? t("diff.removed", { name: names[0] }) : t("diff.added", { name: names[1] });
  return (
    <div className="diff scroll" tabIndex={0} role="group" aria-label={`${names[0]} / ${names[1]}`}>
      {lines.map((line, place) => (
        <div key={place} data-kind={line.kind} title={title(line.kind)}>
          <span aria-label={title(line.kind)} role="img">{SIGNS[line.kind]}</span> {line.text}
        </div>
      ))}
    </div>
  );
}
