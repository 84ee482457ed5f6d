package Contract;
# What both Perl clients are asked: the calls of each feature, and what came back as JSON lines.
# A client is a hash of its calls; one that is missing it cannot do. What should come is in ../../features.toml.
use strict;
use warnings;
use JSON::PP;
use Time::HiRes qw(sleep);

my $json  = JSON::PP->new->canonical->utf8;
my $LONG  = 'kvref ' x 700;
my $KINDS = { a => [ 'one', 'two' ], b => undef };

sub yes { $_[0] ? JSON::PP::true : JSON::PP::false }

sub call {
    my ( $calls, $name, @arguments ) = @_;
    my $call = $calls->{$name} or die "cannot: no call $name\n";
    return scalar $call->(@arguments);
}

my %FEATURES = (
    get => sub {
        my ( $c, $key ) = @_;
        return (
            yes( $c->( set => $key, 'one', 0 ) ),
            $c->( get    => $key ),
            $c->( get    => "$key-none" ),
            yes( $c->( delete => $key ) ),
            $c->( get => $key )
        );
    },
    values => sub {
        my ( $c, $key ) = @_;
        my @same;
        for my $value ( '42', $LONG, $KINDS ) {
            $c->( set => $key, $value, 0 );
            push @same, yes( $json->encode( [ $c->( get => $key ) ] ) eq $json->encode( [$value] ) );
        }
        return @same;
    },
    multi => sub {
        my ( $c, $key ) = @_;
        $c->( set => "${key}1", 'one', 0 );
        $c->( set => "${key}2", 'two', 0 );
        my $found = $c->( get_multi => "${key}1", "${key}2", "$key-none" );
        return map { $found->{$_} } "${key}1", "${key}2", "$key-none";
    },
    store => sub {
        my ( $c, $key ) = @_;
        return (
            yes( $c->( add     => $key, 'one' ) ),
            yes( $c->( add     => $key, 'two' ) ),
            yes( $c->( replace => $key, 'two' ) ),
            yes( $c->( replace => "$key-none", 'two' ) ),
            $c->( get => $key )
        );
    },
    append => sub {
        my ( $c, $key ) = @_;
        $c->( set => $key, 'two', 0 );
        return ( yes( $c->( append => $key, '>' ) ), yes( $c->( prepend => $key, '<' ) ), $c->( get => $key ) );
    },
    cas => sub {
        my ( $c, $key ) = @_;
        $c->( set => $key, 'one', 0 );
        my $found = $c->( gets => $key );
        return (
            $found->[1],
            yes( $c->( cas => $key, $found->[0], 'two' ) ),
            yes( $c->( cas => $key, $found->[0], 'three' ) ),
            $c->( get => $key )
        );
    },
    incr => sub {
        my ( $c, $key ) = @_;
        $c->( set => $key, 5, 0 );
        return map { 0 + $_ } $c->( incr => $key, 3 ), $c->( decr => $key, 2 ), $c->( decr => $key, 10 );
    },
    initial => sub {
        my ( $c, $key ) = @_;
        return ( $c->( incr_from => $key, 3, 5 ), $c->( incr_from => $key, 3, 5 ) );
    },
    at => sub {
        my ( $c, $key ) = @_;
        return (
            yes( $c->( set => "\@\@bbb.$key", 'other', 0 ) ),
            $c->( get => "\@\@bbc.$key" ),
            $c->( get => "\@\@aaa.$key" )
        );
    },
    multi_at => sub {
        my ( $c, $key ) = @_;
        $c->( set => "\@\@bbb.${key}1", 'one', 0 );
        $c->( set => "\@\@aaa.${key}2", 'two',   0 );
        my @keys  = ( "\@\@bbc.${key}1", "\@\@aaa.${key}2" );
        my $found = $c->( get_multi => @keys );
        return map { $found->{$_} } @keys;
    },
    bind   => sub { $_[0]->('raw') },
    expiry => sub {
        my ( $c, $key ) = @_;
        $c->( set => $key, 'one', 2 );
        return $c->( get => $key );
    },
    touch => sub {
        my ( $c, $key ) = @_;
        $c->( set => $key, 'one', 2 );
        return ( yes( $c->( touch => $key, 100 ) ), yes( $c->( touch => "$key-none", 100 ) ) );
    },
    gat => sub {
        my ( $c, $key ) = @_;
        $c->( set => $key, 'one', 2 );
        return ( $c->( gat => $key, 100 ), $c->( gat => "$key-none", 100 ) );
    },
);
# What these answer after a wait is one get more.
my @AT_ONCE   = qw(get values multi store append cas incr initial);
my @WAITING   = qw(expiry touch gat);
my @SWITCHING = qw(at multi_at bind);

sub advance {
    my ( $line, $steps ) = @_;
    return if exists $line->{cannot} or grep { defined && /^error: / } @{ $line->{came} };
    my @came;
    eval { @came = $steps->(); 1 } and return push @{ $line->{came} }, @came;
    chomp( my $error = "$@" );
    if   ( $error =~ s/^cannot: // ) { $line->{cannot} = $error }
    else                             { push @{ $line->{came} }, "error: $error" }
}

my %STORES = map { $_ => 1 } qw(set add replace append prepend cas delete touch);

# Make the calls that standard input lists, a JSON array a line, each with a line of its result.
sub serve {
    my ( $connect, $timeout ) = @_;
    my $calls = {};
    while ( my $line = <STDIN> ) {
        my ( $name, @arguments ) = @{ $json->decode($line) };
        # The libraries take bytes.
        for ( @arguments ) { utf8::encode($_) if defined && !ref }
        my $result = eval {
            if ( $name eq 'connect' ) {
                my $options = ref $arguments[-1] ? pop @arguments : {};
                die "cannot: no option $_\n" for sort keys %$options;
                $calls = $connect->( @arguments, $timeout );
                return { returned => yes(1) };
            }
            if ( $name eq 'get_multi' ) {
                my @keys = @{ $arguments[0] };
                utf8::encode($_) for @keys;
                my $found = call( $calls, $name, @keys ) || {};
                return { returned => { map { texts($_) => texts( $found->{$_} ) } keys %$found } };
            }
            # The contract of features has the number in front of the value.
            @arguments = @arguments[ 0, 2, 1 ] if $name eq 'cas';
            my $returned = call( $calls, $name, @arguments );
            # The cas number is first.
            $returned = [ map { texts($_) } reverse @$returned ] if $name eq 'gets' && $returned;
            $returned = yes($returned) if $STORES{$name};
            # Perl's true zero.
            $returned = '0' if $name eq 'decr' && defined $returned && $returned eq '0E0';
            return { returned => ref $returned ? $returned : texts($returned) };
        };
        if ( !$result ) {
            chomp( my $error = "$@" );
            $result = $error =~ s/^cannot: // ? { cannot => $error } : { raised => $error };
        }
        print $json->encode($result), "\n";
    }
    exit;
}

sub texts {
    my ($value) = @_;
    utf8::decode($value) if defined $value;
    return $value;
}

# Run the contract: arguments HOST PORT PROTOCOL PREFIX, or --calls PROTOCOL TIMEOUT.
sub main {
    my ( $package, $version, $connect ) = @_;
    $| = 1;
    print $json->encode( { client => $package, version => "$version", runtime => sprintf( 'Perl %vd', $^V ) } ), "\n";
    serve( $connect, $ARGV[2] ) if $ARGV[0] eq '--calls';
    my ( $host, $port, undef, $prefix ) = @ARGV;
    my $calls = $connect->( $host, $port, 5 );
    my $c     = sub { call( $calls, @_ ) };
    my $begin = sub {
        map {
            my $name = $_;
            my $line = { feature => $name, came => [] };
            advance( $line, sub { $FEATURES{$name}->( $c, "$prefix-$name" ) } );
            $line
        } @_;
    };
    my $tell = sub { print $json->encode($_), "\n" for @_ };
    $tell->( $begin->(@AT_ONCE) );
    my @waiting = $begin->(@WAITING);
    sleep 3.2;
    for my $line (@waiting) {
        advance( $line, sub { $c->( get => "$prefix-$line->{feature}" ) } );
    }
    $tell->(@waiting);
    $tell->( $begin->(@SWITCHING) );
}

1;
