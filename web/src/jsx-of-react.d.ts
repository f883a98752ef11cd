declare module "jsx-of-react" {
  export * from "react/jsx-runtime";
}
