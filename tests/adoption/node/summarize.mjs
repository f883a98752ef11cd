// Summary of a text for our newsletter: the first sentences.
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * @param {{ text: string, sentences?: number }} input
 */
export default async function summarize({ text, sentences = 1 }) {
  if (!text) throw new TypeError('text is empty');
  await sleep(1);
  const parts = text.match(/[^.!?]+[.!?]?/g).map((s) => s.trim()).filter(Boolean);
  return { summary: parts.slice(0, sentences).join(' '), left: Math.max(parts.length - sentences, 0) };
}
