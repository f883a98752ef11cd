// Makes every element of the page, also those of libraries: vite.config.ts puts it in the place of React's own.
import { Fragment, jsx as make, jsxs as makeOfMany } from "jsx-of-react";
import type { ElementType, Key } from "react";
import { withVisibleTexts } from "./visible";

export { Fragment };

export const jsx = (type: ElementType, given: object, key?: Key) => make(type, withVisibleTexts(type, given), key);
export const jsxs = (type: ElementType, given: object, key?: Key) => makeOfMany(type, withVisibleTexts(type, given), key);
// What a build for development calls; it says whether the children stand in the source, one by one.
export const jsxDEV = (type: ElementType, given: object, key?: Key, isStatic?: boolean) => (isStatic ? jsxs : jsx)(type, given, key);
