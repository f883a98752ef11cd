// A JSON editor; its styles carry the nonce of the page.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { HIDDEN } from "../hidden";
import { nonce } from "../nonce";

// The colours are variables of page.css, which has them for both schemes.
const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--code-name)" },
  { tag: tags.string, color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-value)" },
]);
const THEME = EditorView.theme({
  "&": { color: "var(--mantine-color-text)" },
  ".cm-content": { caretColor: "var(--mantine-color-text)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-gutters": { background: "transparent", color: "var(--mantine-color-dimmed)", borderRight: "1px solid var(--mantine-color-default-border)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--code-selected)" },
  "&.cm-focused .cm-matchingBracket": { background: "var(--code-selected)", outline: "1px solid currentColor" },
});

export default function JsonEditor({ value, onChange, label }: { value: string; onChange: (value: string) => void; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const change = useRef(onChange);
  change.current = onChange;

  useEffect(() => {
    const made = new EditorView({
      parent: place.current as HTMLElement,
      state: EditorState.create({
        doc: value,
        extensions: [
          EditorView.cspNonce.of(nonce),
          // Tab leaves the editor, so that a keyboard is never caught in it.
          keymap.of([...defaultKeymap, ...historyKeymap]),
          history(),
          lineNumbers(),
          json(),
          indentOnInput(),
          bracketMatching(),
          syntaxHighlighting(COLOURS),
          highlightSpecialChars({ specialChars: HIDDEN }),
          THEME,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) change.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
    // The editor is made once; later values arrive by the effect below.
  }, [label]);

  useEffect(() => {
    const made = view.current;
    if (made && made.state.doc.toString() !== value) {
      made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: value } });
    }
  }, [value]);

  return <div ref={place} className="editor" />;
}
