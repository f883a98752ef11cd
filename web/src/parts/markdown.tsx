// Documentation in Markdown, built from its syntax tree: text nodes and a fixed set of elements, never markup of its author.
import { Anchor, Code, Table, Text, Title } from "@mantine/core";
import type { Nodes, Root, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTable } from "micromark-extension-gfm-table";
import { Fragment, type ReactNode, useMemo } from "react";
import { checkedLink } from "../links";
import { t } from "../messages";

// A page of documentation has a heading of its own above it.
const HEADINGS = [4, 5, 6, 6, 6, 6] as const;
const MAX_LETTERS = 200_000;
const MAX_DEPTH = 40;

export default function Markdown({ text }: { text: string }) {
  const tree = useMemo(() => parse(text.slice(0, MAX_LETTERS)), [text]);
  return (
    <div className="prose">
      {tree ? children(tree, 0) : <Code block className="wrap scroll" tabIndex={0}>{text}</Code>}
      {text.length > MAX_LETTERS && <Text size="sm">{t("tool.result.large", { shown: MAX_LETTERS, total: text.length })}</Text>}
    </div>
  );
}

export function parse(text: string): Root | null {
  try {
    return fromMarkdown(text, { extensions: [gfmTable()], mdastExtensions: [gfmTableFromMarkdown()] });
  } catch {
    return null;
  }
}

function children(node: { children: readonly RootContent[] }, depth: number): ReactNode {
  return node.children.map((child, place) => <Fragment key={place}>{shown(child, depth + 1)}</Fragment>);
}

function shown(node: Nodes, depth: number): ReactNode {
  if (depth > MAX_DEPTH) return "…";
  switch (node.type) {
    case "text":
      return node.value;
    case "paragraph":
      return <Text component="p" my="xs" className="words">{children(node, depth)}</Text>;
    case "heading":
      return <Title order={HEADINGS[node.depth - 1] ?? 6} mt="md" className="words">{children(node, depth)}</Title>;
    case "strong":
      return <strong>{children(node, depth)}</strong>;
    case "emphasis":
      return <em>{children(node, depth)}</em>;
    case "inlineCode":
      return <Code>{node.value}</Code>;
    case "code":
      return <Code block className="wrap scroll" tabIndex={0}>{node.value}</Code>;
    case "blockquote":
      return <blockquote>{children(node, depth)}</blockquote>;
    case "list":
      return node.ordered ? <ol start={node.start ?? 1}>{children(node, depth)}</ol> : <ul>{children(node, depth)}</ul>;
    case "listItem":
      return <li>{children(node, depth)}</li>;
    case "thematicBreak":
      return <hr />;
    case "break":
      return <br />;
    case "link":
      return linked(node.url, children(node, depth));
    case "image":
      // Nothing is loaded from elsewhere; what the picture shows is said.
      return node.alt ?? "";
    case "table":
      return tabled(node.children.map((row) => row.children.map((cell) => children(cell, depth + 2))));
    case "html":
      return node.value;
    case "linkReference":
    case "imageReference":
      return "children" in node ? children(node, depth) : (node.alt ?? "");
    default:
      return null;
  }
}

// A link says where it leads, because its text may say something else.
function linked(url: string, text: ReactNode): ReactNode {
  const target = checkedLink(url);
  if (!target) return text;
  return <><Anchor href={target.href} target="_blank" rel="noopener noreferrer nofollow" underline="always">{text}</Anchor>{` (${target.host})`}</>;
}

function tabled([head, ...rows]: ReactNode[][]): ReactNode {
  return (
    <Table withTableBorder withColumnBorders my="xs">
      <Table.Thead><Table.Tr>{head?.map((cell, place) => <Table.Th key={place} scope="col">{cell}</Table.Th>)}</Table.Tr></Table.Thead>
      <Table.Tbody>{rows.map((row, number) => <Table.Tr key={number}>{row.map((cell, place) => <Table.Td key={place} className="words">{cell}</Table.Td>)}</Table.Tr>)}</Table.Tbody>
    </Table>
  );
}
