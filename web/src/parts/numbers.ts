import { writeNumber } from "../language";

// A figure as precise as a person reads it: whole from ten on, one digit below.
export function shortNumber(value: number): string {
  return writeNumber(value >= 10 ? Math.round(value) : Math.round(value * 10) / 10);
}
