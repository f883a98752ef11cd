// A JSON editor; its styles carry the nonce of the page.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, defaultHighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { nonce } from "../nonce";

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
          syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
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
