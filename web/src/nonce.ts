// The server writes a fresh nonce into the document; styles that libraries insert carry it.
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

// The library that keeps the page from scrolling behind a dialog asks for its nonce under this name.
(globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = nonce;
