// A form from a JSON Schema. The validator interprets the schema instead of compiling it to code, which our policy forbids.
import { Validator } from "@cfworker/json-schema";
import { Text } from "@mantine/core";
import Form, { Widgets } from "@rjsf/mantine";
import {
  createErrorHandler, type CustomValidator, englishStringTranslator, type ErrorTransformer, type FieldErrorProps, type RJSFSchema, type RJSFValidationError, toErrorList,
  toErrorSchema, TranslatableString, type UiSchema, unwrapErrorHandler, type ValidationData, validationDataMerge, type ValidatorType, type WidgetProps,
} from "@rjsf/utils";
import { type ComponentType, type ReactNode, useMemo, useRef } from "react";
import { type MessageId, t } from "../messages";
import { withFixed } from "./fixed-values";
import { type Complaint, complaintsOf, type Finding, forForm } from "./schema-words";

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
      return { errors: complaintsOf(errors as Finding[], schema as Data).map(readable) as Result[] };
    } catch (problem) {
      // A schema that cannot be judged here is judged by the server.
      return { errors: [], validationError: problem as Error };
    }
  },
};

function readable({ keyword, path, message }: Complaint): RJSFValidationError {
  const property = path.map((step) => `.${step}`).join("");
  return { name: keyword, property, message, stack: `${property} ${message}` };
}

// A field of its own shows what is wrong with it; only objects and lists have no other place for that.
function FieldErrors({ errors = [], schema }: FieldErrorProps<Data>) {
  if (errors.length === 0 || (schema.type !== "object" && schema.type !== "array")) return null;
  return <Text size="sm" role="alert" c="var(--mantine-color-error)">{errors.join("; ")}</Text>;
}

interface Shared {
  choose: (id: string, option: number) => void;
}

// A choice between options notes what was chosen, so that the option's mark can be filled in.
function Choice(given: WidgetProps<Data, RJSFSchema, Shared>) {
  const Select = Widgets.SelectWidget as ComponentType<WidgetProps<Data, RJSFSchema, Shared>>;
  const { id, onChange, registry } = given;
  return <Select {...given} onChange={(value, ...rest) => { registry.formContext.choose(id, Number(value)); onChange(value, ...rest); }} />;
}

// The texts that the form has of its own; the others are of widgets that no schema asks for here.
const TEXTS: Partial<Record<TranslatableString, MessageId>> = {
  [TranslatableString.ArrayItemTitle]: "form.item",
  [TranslatableString.MissingItems]: "form.unsupported",
  [TranslatableString.EmptyArray]: "form.empty",
  [TranslatableString.YesLabel]: "form.yes",
  [TranslatableString.NoLabel]: "form.no",
  [TranslatableString.CloseLabel]: "app.close",
  [TranslatableString.ErrorsLabel]: "app.failed",
  [TranslatableString.NewStringDefault]: "form.newValue",
  [TranslatableString.AddButton]: "form.add",
  [TranslatableString.AddItemButton]: "form.addItem",
  [TranslatableString.CopyButton]: "tool.copy",
  [TranslatableString.ExpandButton]: "form.expand",
  [TranslatableString.MoveDownButton]: "form.down",
  [TranslatableString.MoveUpButton]: "form.up",
  [TranslatableString.RemoveButton]: "form.remove",
  [TranslatableString.NowLabel]: "form.now",
  [TranslatableString.ClearLabel]: "form.clear",
  [TranslatableString.ClearButton]: "form.clear",
  [TranslatableString.AriaDateLabel]: "form.date",
  [TranslatableString.OptionalObjectAdd]: "form.add",
  [TranslatableString.OptionalObjectRemove]: "form.remove",
  [TranslatableString.OptionalObjectEmptyMsg]: "form.empty",
  [TranslatableString.Type]: "form.kind",
  [TranslatableString.Value]: "form.value",
  [TranslatableString.KeyLabel]: "form.key",
  [TranslatableString.DeprecatedLabel]: "form.deprecated",
  [TranslatableString.CycleDetected]: "form.cycle",
  [TranslatableString.UnknownFieldType]: "form.unsupported",
  [TranslatableString.InvalidObjectField]: "form.unsupported",
  [TranslatableString.UnsupportedField]: "form.unsupported",
  [TranslatableString.UnsupportedFieldWithId]: "form.unsupported",
  [TranslatableString.UnsupportedFieldWithReason]: "form.unsupported",
  [TranslatableString.UnsupportedFieldWithIdAndReason]: "form.unsupported",
};

function translate(text: TranslatableString, given: string[] = []): string {
  const id = TEXTS[text];
  return id ? t(id, { name: given[0] ?? "" }) : englishStringTranslator(text, given);
}

// `onChange` says whether a person changed something, or the form filled in defaults.
export default function SchemaForm(given: {
  schema: Record<string, unknown>;
  value: Data;
  onChange: (value: Data, byPerson: boolean) => void;
  disabled?: boolean;
  children?: ReactNode;
}) {
  const { schema, value, onChange, disabled = false, children } = given;
  // The title and description stand above the form already.
  const plain = useMemo(() => ({ ...forForm(schema), title: "", description: undefined }) as RJSFSchema, [schema]);
  const chosen = useRef(new Map<string, number>());
  const shared = useRef<Shared>({ choose: (id, option) => chosen.current.set(id, option) });
  return (
    <Form
      schema={plain}
      validator={validator}
      formData={value}
      onChange={(event, id) => onChange(withFixed(schema, event.formData ?? {}, chosen.current, schema) as Data, id !== undefined)}
      formContext={shared.current}
      widgets={{ SelectWidget: Choice as never }}
      uiSchema={{ "ui:submitButtonOptions": { norender: true } }}
      templates={{ FieldErrorTemplate: FieldErrors }}
      translateString={translate}
      showErrorList={false}
      liveValidate="onChange"
      noHtml5Validate
      disabled={disabled}
      experimental_defaultFormStateBehavior={{ emptyObjectFields: "populateRequiredDefaults" }}
    >
      {children ?? <></>}
    </Form>
  );
}
