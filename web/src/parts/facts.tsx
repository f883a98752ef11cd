import type { ReactNode } from "react";
import type { Tool } from "../api/client";
import { t } from "../messages";

// Names and what they stand for, as a table of two columns; on a narrow page each value stands below its name.
export function Facts({ rows, label }: { rows: readonly (readonly [string, ReactNode])[]; label?: string }) {
  return (
    <table className="facts" aria-label={label}>
      <tbody>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td className="wrap">{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// What a tool that asks a database would run there, with its parameters still open.
export function queryOf({ database, statement }: Tool): [string, string][] {
  return statement ? [[t("recipe.query.database"), database ?? ""], [t("recipe.query.statement"), statement]] : [];
}
