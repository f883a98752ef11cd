import{r as e}from"./failure-sX8GZdvE.js";import{r as t}from"./messages-CrMt2RyV.js";var n=64e6,r=class{#e=``;feed(r){let i=(this.#e+r).split(`

`);if(this.#e=i.pop()??``,this.#e.length>n)throw new e({detail:t(`tool.brokeOff`)});return i.flatMap(e=>{let t=e.split(`
`),n=t.filter(e=>e.startsWith(`data:`)).map(e=>e.slice(5).replace(/^ /,``)),r=t.find(e=>e.startsWith(`event:`))?.slice(6).trim()??`message`;return n.length?[{name:r,data:n.join(`
`)}]:[]})}};export{r as t};