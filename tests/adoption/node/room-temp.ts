#!/usr/bin/env node
enum Unit {
  Celsius = 'C',
  Fahrenheit = 'F',
}

export function toCelsius(value: number, unit: Unit = Unit.Celsius): number {
  return unit === Unit.Fahrenheit ? ((value - 32) * 5) / 9 : value;
}
