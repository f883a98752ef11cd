// The frame around every screen: header, list of screens, and the screen itself.
import {
  ActionIcon, Anchor, AppShell, Burger, Button, Group, Loader, NavLink, Text, Title, useComputedColorScheme, useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Suspense, useEffect, useRef } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { t } from "./messages";
import { Failure, FailureBoundary } from "./parts/failure";
import { toolScreen, useScreens } from "./screens";
import { SignInButton } from "./sign-in";
import { useWaiting } from "./waiting";

export function Shell() {
  const [opened, menu] = useDisclosure();
  const [location] = useLocation();
  const screens = useScreens();
  const waiting = useWaiting();
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);

  // After a change of screen the focus goes to the new content, as it does when a browser loads a page.
  useEffect(() => {
    menu.close();
    if (first.current) first.current = false;
    else main.current?.focus();
  }, [location, menu.close]);

  return (
    <AppShell header={{ height: 52 }} navbar={{ width: 200, breakpoint: "sm", collapsed: { mobile: !opened } }} padding="md">
      <a className="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        {t("app.skip")}
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={menu.toggle} hiddenFrom="sm" size="sm" aria-label={t("app.menu")} />
            <Anchor component={Link} href="/tools" underline="never" c="inherit">
              <Group gap={8} wrap="nowrap"><img src="./icon.svg" alt="" width={26} height={26} /><Title order={1} size="h4">{t("app.title")}</Title></Group>
            </Anchor>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <span aria-live="polite">
              {waiting > 0 && (
                <Button component={Link} href="/approvals" size="compact-sm" color="red.9" aria-label={t("approvals.waiting", { count: waiting })}>
                  <Text span inherit visibleFrom="sm">{t("approvals.waiting", { count: waiting })}</Text><Text span inherit hiddenFrom="sm">{waiting}</Text>
                </Button>
              )}
            </span>
            <SignInButton /><ColourSwitch />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className="nav" p="xs" aria-label={t("nav.label")}>
        {screens.map((screen) => (
          <NavLink
            key={screen.path}
            component={Link}
            href={screen.path}
            label={t(screen.title)}
            leftSection={<svg className="nav-icon" viewBox="0 0 24 24" aria-hidden="true"><path d={screen.icon} /></svg>}
            active={location.startsWith(screen.path)}
            aria-current={location.startsWith(screen.path) ? "page" : undefined}
            color="indigo"
            variant="filled"
          />
        ))}
      </AppShell.Navbar>
      <AppShell.Main ref={main} tabIndex={-1} id="main" className="main">
        <FailureBoundary key={location}>
          <Suspense fallback={<Loader aria-label={t("app.loading")} />}>
            <Switch>
              <Route path="/"><Redirect to="/tools" /></Route>
              <Route path="/tools/:address" component={toolScreen} />
              {screens.flatMap(({ path, inner, component }) => [path, ...(inner ? [inner] : [])].map((one) => <Route key={one} path={one} component={component} />))}
              {screens.length > 0 && <Route><Failure message={t("app.noScreen")} /></Route>}
            </Switch>
          </Suspense>
        </FailureBoundary>
      </AppShell.Main>
    </AppShell>
  );
}

function ColourSwitch() {
  const { setColorScheme } = useMantineColorScheme();
  const now = useComputedColorScheme("light");
  return (
    <ActionIcon
      variant="default"
      size="lg"
      aria-label={t("app.colour")}
      onClick={() => setColorScheme(now === "light" ? "dark" : "light")}
    >
      <Text aria-hidden>{now === "light" ? "☾" : "☀"}</Text>
    </ActionIcon>
  );
}
