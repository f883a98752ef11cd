// A form from a JSON Schema. The validator interprets the schema instead of compiling it to code, which our policy forbids.
import { Validator } from "@cfworker/json-schema";
import Form from "@rjsf/mantine";
import {
  createErrorHandler, type CustomValidator, type ErrorTransformer, type RJSFSchema, type RJSFValidationError, toErrorList, toErrorSchema,
  type UiSchema, unwrapErrorHandler, type ValidationData, validationDataMerge, type ValidatorType,
} from "@rjsf/utils";
import { type ReactNode, useMemo } from "react";
import { t } from "../messages";

type Data = Record<string, unknown>;

const validator: ValidatorType<Data> = {
  validateFormData(data, schema, customValidate?: CustomValidator<Data>, transform?: ErrorTransformer<Data>, uiSchema?: UiSchema<Data>): ValidationData<Data> {
    const { errors: raw = [] } = validator.rawValidation<RJSFValidationError>(schema, data);
    const errors = transform ? transform(raw, uiSchema) : raw;
    const found = { errors, errorSchema: toErrorSchema<Data>(errors) };
    if (!customValidate || data === undefined) return found;
    const handled = unwrapErrorHandler<Data>(customValidate(data, createErrorHandler<Data>(data), uiSchema));
    return validationDataMerge<Data>({ ...found, errors: toErrorList<Data>(found.errorSchema) }, handled);
  },
  isValid(schema, data, root) {
    try {
      return new Validator({ ...root, ...schema } as never, "2020-12").validate(data).valid;
    } catch {
      return false;
    }
  },
  rawValidation<Result = unknown>(schema: RJSFSchema, data?: Data) {
    try {
      const { errors } = new Validator(schema as never, "2020-12", false).validate(data);
      return { errors: errors.filter((error) => error.keyword !== "properties" && error.keyword !== "items").map(readable) as Result[] };
    } catch (problem) {
      // A schema that cannot be judged here is judged by the server.
      return { errors: [], validationError: problem as Error };
    }
  },
};

function readable(error: { keyword: string; instanceLocation: string; error: string }): RJSFValidationError {
  const path = error.instanceLocation.replace(/^#/, "").split("/").slice(1).map(unescape);
  const missing = error.keyword === "required" ? /"([^"]+)"/.exec(error.error)?.[1] : undefined;
  const property = [...path, ...(missing ? [missing] : [])].map((word) => `.${word}`).join("");
  return { name: error.keyword, property, message: missing ? t("form.required") : error.error, stack: `${property} ${error.error}` };
}

function unescape(word: string): string {
  return decodeURIComponent(word).replaceAll("~1", "/").replaceAll("~0", "~");
}

export default function SchemaForm(given: { schema: Record<string, unknown>; value: Data; onChange: (value: Data) => void; children?: ReactNode }) {
  const { schema, value, onChange, children } = given;
  // The title and description stand above the form already.
  const plain = useMemo(() => ({ ...schema, title: "", description: undefined }) as RJSFSchema, [schema]);
  return (
    <Form
      schema={plain}
      validator={validator}
      formData={value}
      onChange={(event) => onChange((event.formData ?? {}) as Data)}
      uiSchema={{ "ui:submitButtonOptions": { norender: true } }}
      showErrorList={false}
      liveValidate="onChange"
      noHtml5Validate
      experimental_defaultFormStateBehavior={{ emptyObjectFields: "populateRequiredDefaults" }}
    >
      {children ?? <></>}
    </Form>
  );
}
