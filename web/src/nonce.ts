// The server writes a fresh nonce into the document; styles that libraries insert carry it.
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
